import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe } from "vitest";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import type { DeviceTrouble } from "../../../src/capabilities/conformance/device-bench.ts";
import { describeFabric, type FabricBench } from "../../../src/capabilities/conformance/fabric.ts";
import {
  describeFirmware,
  type FirmwareBench,
  type RealFlash,
} from "../../../src/capabilities/conformance/firmware.ts";
import type { Provider } from "../../../src/capabilities/provider.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { createNvueFabric } from "../../../src/providers/nvue/nvue-fabric.ts";
import type { RedfishClientOptions } from "../../../src/providers/redfish/client.ts";
import { createRedfishMachineProvider } from "../../../src/providers/redfish/machine/redfish-machine-provider.ts";
import { createRedfishShelfProvider } from "../../../src/providers/redfish/shelf/redfish-shelf-provider.ts";
import { createRedfishSwitchProvider } from "../../../src/providers/redfish/switch/redfish-switch-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { type MachineSite, startMachineSite } from "../../support/machine-site.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { MACHINE_TROUBLES } from "./simulated-machine-bench.ts";

/** What a device of each kind is delivered with, and which part runs as soon as it is written. */
const KINDS = {
  machine: { model: "GB-2U-96C", component: "bmc" },
  shelf: { model: "PF-1333-7R", component: "psu" },
  switch: { model: "N5110_LD", component: "bmc" },
} as const;
type Kind = keyof typeof KINDS;

interface Truth {
  readonly requests: number;
  readonly components: readonly { readonly id: string; readonly version: string }[];
  readonly flashes: readonly RealFlash[];
}
interface Row {
  readonly id: string;
  readonly target: BmcTarget;
}

/** A lie about power is nothing to firmware, nor is one about accepting. */
const TROUBLES = MACHINE_TROUBLES.filter((each) => !each.startsWith("lies_")) as readonly DeviceTrouble[];
const FAULTS: Partial<Record<DeviceTrouble, object>> = {
  cuts_connections: { type: "drop" },
  hangs: { type: "hang" },
  is_overloaded: { type: "status", status: 503 },
  writes_garbage: { type: "garbage" },
  rejects_credentials: { type: "wrong_credentials" },
  talks_nonsense: { type: "status", status: 200, body: { message: "It works!" } },
  forbids: { type: "status", status: 403 },
};

let site: MachineSite;
let directory: string;
let files: Server;
let served: Uint8Array = Buffer.alloc(0);
const used: Record<Kind, number> = { machine: 0, shelf: 0, switch: 0 };
const open: (() => Promise<void> | void)[] = [];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-firmware-"));
  const file = join(directory, "site.yaml");
  const racks = Array.from({ length: 9 }, (_, at) => `  - { id: rack-${at + 1}, shelves: 8, machines: 8 }\n`);
  writeFileSync(file, `racks:\n${racks.join("")}`);
  // A flash takes 600 ms, a restart of a BMC 20 ms.
  site = await startMachineSite({ speed: 1_000, site: file });
  files = createServer((_request, response) => response.end(served));
  await new Promise<void>((resolve) => files.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  await site.control("DELETE", "/faults");
  for (const close of open.splice(0)) await close();
});
afterAll(async () => {
  await new Promise((resolve) => files.close(resolve));
  await site.stop();
  rmSync(directory, { recursive: true, force: true });
});

interface Listed {
  readonly bmc_ip_address: string;
  readonly bmc_username: string;
  readonly bmc_password: string;
  readonly metadata: { readonly name: string };
}
interface ListedSwitch extends Listed {
  readonly rack_id: string;
  readonly nvos_username: string;
  readonly nvos_password: string;
}

const targetOf = (endpoint: string, username: string, password: string): BmcTarget => {
  const [address = "", port = ""] = endpoint.split(":");
  return { address, port: Number(port), scheme: "https", username, password, trust: { mode: "off" } };
};

/** A device of the kind that no test has used yet. */
async function fresh(kind: Kind): Promise<Row> {
  const at = used[kind]++;
  if (kind === "machine") {
    const machine = site.machines[at];
    if (machine === undefined) throw new Error("more machines are needed");
    return { id: machine.machine_id, target: site.bmc(machine) };
  }
  const rows = await site.control<Listed[]>("GET", kind === "switch" ? "/inventory/switches" : "/inventory");
  const row = rows[at];
  if (row === undefined) throw new Error(`more devices are needed: ${kind}`);
  const target = targetOf(row.bmc_ip_address, row.bmc_username, row.bmc_password);
  return { id: row.metadata.name, target };
}

const CREATE = {
  machine: createRedfishMachineProvider,
  shelf: createRedfishShelfProvider,
  switch: createRedfishSwitchProvider,
} satisfies Record<Kind, (options: RedfishClientOptions) => Provider & { close(): Promise<void> }>;

const benchOf = (kind: Kind) => async (): Promise<FirmwareBench> => {
  const gateway = createBmcGateway({ backOff: milliseconds(5), openFor: milliseconds(100) });
  const provider = CREATE[kind]({ gateway });
  open.push(
    () => provider.close(),
    () => gateway.close(),
  );
  const { id, target } = await fresh(kind);
  const truth = () => site.control<Truth>("GET", `/devices/${id}`);
  const start = await truth();
  const { model, component } = KINDS[kind];
  return {
    provider,
    target,
    installed: Object.fromEntries(start.components.map((each) => [each.id, each.version])),
    component,
    image: (part, version) => Buffer.from(`MILLWRIGHT-FW ${model} ${part} ${version}\n${"image ".repeat(40_000)}`),
    async serve(image) {
      served = image;
      return `http://127.0.0.1:${(files.address() as AddressInfo).port}/image`;
    },
    flashes: async () => (await truth()).flashes,
    requestsReceived: async () => (await truth()).requests - start.requests,
    cause: (trouble) => site.control("POST", "/faults", { device: id, fault: FAULTS[trouble] }),
    putRight: () => site.control("DELETE", "/faults"),
  };
};

describe("redfish", () => {
  describeFirmware("a machine", benchOf("machine"), TROUBLES);
  describeFirmware("a power shelf", benchOf("shelf"), []);
  describeFirmware("a switch", benchOf("switch"), []);
});

describe("nvue", () => {
  let racks = 0;
  describeFabric("simulated switches", async (): Promise<FabricBench> => {
    const gateway = createBmcGateway({ backOff: milliseconds(5), openFor: milliseconds(100) });
    const fabric = createNvueFabric({ gateway });
    open.push(
      () => fabric.close(),
      () => gateway.close(),
    );
    racks += 1;
    const rows = (await site.control<ListedSwitch[]>("GET", "/inventory/switches")).filter(
      ({ rack_id }) => rack_id === `rack-${10 - racks}`,
    );
    const targets = await Promise.all(
      rows.map(async (row) => {
        const { nvos } = await site.control<{ readonly nvos: { readonly address: string } }>(
          "GET",
          `/devices/${row.metadata.name}`,
        );
        const port = row.bmc_ip_address.split(":")[1] ?? "";
        return targetOf(`${nvos.address}:${port}`, row.nvos_username, row.nvos_password);
      }),
    );
    const [primary, ...others] = targets;
    if (primary === undefined) throw new Error("the rack has no switches");
    const path = `/devices/${rows[0]?.metadata.name}`;
    const effects = async () =>
      (
        await site.control<{ readonly effects: Readonly<Record<"fabric_starts" | "revisions_opened", number>> }>(
          "GET",
          path,
        )
      ).effects;
    const { speed } = await site.control<{ speed: number }>("GET", "/speed");
    return {
      fabric,
      switches: [primary, ...others],
      starts: async () => (await effects()).fabric_starts,
      changesOpened: async () => (await effects()).revisions_opened,
      setPace: (pace) => site.control("PUT", "/speed", { speed: pace === "slow" ? 0.01 : speed }),
    };
  });
});
