import { z } from "zod";
import { ensureDevToken } from "../../api/auth/dev-token.ts";
import { AppError } from "../../kernel/errors.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { addExpectedPowerShelf } from "../../services/expected-power-shelf/expected-power-shelves.ts";
import { createToken, verifyToken } from "../../services/system/tokens.ts";
import { refuseIfOwned } from "../../store/embedded/owner-lock.ts";
import { type Server, type ServerOptions, startServer } from "../server.ts";
import { StopSequence } from "../stop-sequence.ts";
import { buildConsole } from "./build-console.ts";
import { recordSimulatedMaas, withAgentsHere } from "./dev-fleet.ts";
import { recordSimulatedMachines } from "./dev-machines.ts";
import { offerNetworkBoot, withSimulatedFiles } from "./dev-netboot.ts";
import {
  expectSimulatedRacks,
  expectSimulatedSwitches,
  recordSimulatedFirmware,
  withSimulatedRackManager,
} from "./dev-racks.ts";
import { startSimulatorProcess } from "./simulator-process.ts";

export interface Dev extends Server {
  /** Signs its reader in to the console, once. */
  readonly consoleUrl: string;
  readonly simulatorUrl: string;
  readonly tokenPath: string;
  readonly expectedShelves: number;
  readonly switches: number;
  readonly machines: number;
}

const caller = { name: "dev", roles: ["admin"], address: null } as const;

const inventorySchema = z.array(
  z.object({
    bmc_mac_address: z.string(),
    bmc_username: z.string(),
    bmc_password: z.string(),
    shelf_serial_number: z.string(),
    bmc_ip_address: z.string(),
    rack_id: z.string(),
    metadata: z.object({ name: z.string() }),
  }),
);

/** Everything on one machine: a simulated datacentre, the server, a token that the command line finds, and the inventory on record. */
export async function startDev(given: ServerOptions & { readonly simulatorFlags: readonly string[] }): Promise<Dev> {
  const options = { ...given, config: withAgentsHere(withSimulatedFiles(given.config)) };
  // Before the simulator, which would stumble over the other's and say nothing of whose it is.
  if (options.config.database.url === null) refuseIfOwned(options.config.dataDir);
  const stops = new StopSequence(options.log);
  const built = buildConsole(options); // beside the start of the database, which takes as long
  try {
    // The devices come first and go last: whatever the server asks of them is answered.
    const simulator = await startSimulatorProcess(options);
    stops.add("the simulator", () => simulator.stop());
    const config = await withSimulatedRackManager(options.config, simulator.controlUrl);
    const simulatedNodesAt: { url: string | null } = { url: null };
    const server = await startServer({ ...options, config, simulatedNodesAt });
    simulatedNodesAt.url = server.httpUrl;
    stops.add(
      "the server",
      () => server.stop(),
      () => server.abandon(),
    );
    const { path, token } = await ensureDevToken(options.config.dataDir, {
      verify: (token) => verifyToken(server.deps, token),
      create: ({ name, roles }) => createToken(server.deps, caller, { name, roles, expiresAt: null, ageless: true }),
    });
    // Firmware first: a rack that is whole takes the default that there is by then.
    await recordSimulatedFirmware(server.deps, caller, simulator.controlUrl);
    const expectedShelves = await expectInventory(server.deps, simulator.controlUrl);
    const switches = await expectSimulatedSwitches(server.deps, caller, simulator.controlUrl);
    const machines = await recordSimulatedMachines(server.deps, caller, simulator.controlUrl);
    await expectSimulatedRacks(server.deps, caller, simulator.controlUrl);
    await recordSimulatedMaas(server.deps, caller, simulator.controlUrl);
    // Last: a machine that nobody knows boots at once.
    await offerNetworkBoot(server.deps, caller, {
      ...options,
      bootUrl: server.bootUrl ?? server.httpUrl,
      controlUrl: simulator.controlUrl,
    });
    await built;
    return {
      ...server,
      consoleUrl: server.signInLink(token),
      simulatorUrl: simulator.controlUrl,
      tokenPath: path,
      expectedShelves,
      switches,
      machines,
      stop: () => stops.run(),
      abandon: () => stops.abandon(),
    };
  } catch (error) {
    await stops.run();
    throw error;
  }
}

/** Puts the simulated site's shelves on record, as its operator would; those on record already stay as they are. */
async function expectInventory(deps: ServiceDeps, controlUrl: string): Promise<number> {
  const answer = await fetch(new URL("/inventory", controlUrl));
  const rows = inventorySchema.parse(await answer.json());
  for (const row of rows) {
    try {
      await addExpectedPowerShelf(deps, caller, {
        bmcMac: row.bmc_mac_address,
        bmcUsername: row.bmc_username,
        bmcPassword: row.bmc_password,
        serial: row.shelf_serial_number,
        bmcEndpoint: row.bmc_ip_address,
        rackId: row.rack_id,
        metadata: { name: row.metadata.name, description: "", labels: {} },
      });
    } catch (error) {
      if (!(error instanceof AppError) || error.kind !== "already_exists") throw error;
    }
  }
  return rows.length;
}
