import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { minutes, seconds } from "../../../src/kernel/time/duration.ts";
import { addExpectedPowerShelf } from "../../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { registerMachine } from "../../../src/services/machine/machines.ts";
import { createRackFirmware } from "../../../src/services/rack-firmware/rack-firmware.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";
import { announceNow } from "../../../src/store/lifecycle/journal.ts";
import { expectSimulatedRacks, expectSimulatedSwitches } from "../../../src/wiring/dev/dev-racks.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { eventually } from "../eventually.ts";
import type { SimulatedMachine } from "../machine-site.ts";
import type { ProcessBench, StartedProcess } from "../processes/process-bench.ts";
import { startProgram } from "../processes/programs.ts";
import type { RackVictimOrder } from "../processes/rack-victim.ts";
import { openRunReplica, type RunReplica } from "../processes/run-replica.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../processes/simulator-process.ts";
import { NOTHING_ELSE, tester } from "../run-bench.ts";
import { CHECKED } from "./rack-bench.ts";

/** Simulated time runs so much faster, but for the moments in which a device must not be done yet. */
const SPEED = 2_000;
const SLOW = 0.01;

/** A command was announced, and perhaps sent; or it is announced by what was just written, and was not sent. */
const IS_OPEN = /, (update|activate|set_device)\S* announced at/;
const IS_NOT_SENT = /, (update\S* acted at committer:after|activate\S* announced at controller:loaded)/;
/** Longer than a device gets to show what it may have heard of; and longer than one gets that does not tell when it started. */
const SETTLES = seconds(46);
const SURELY_SETTLES = minutes(5) + 1_000;

export interface FlashOnDevice {
  readonly component: string;
  readonly to: string;
  readonly outcome: string;
}
export interface DeviceTruth {
  readonly id: string;
  readonly kind: string;
  readonly power: string;
  readonly flashes: readonly FlashOnDevice[];
  readonly effects: Readonly<Record<string, number>>;
}

export interface Deaths {
  /** How many replicas are alive at a time; who dies is followed by another one. */
  readonly replicas: 1 | 2;
  readonly failPoints: readonly string[];
  /** Absent: in every position. */
  readonly positions?: RegExp;
}

/** One rack with a tray, two switches and a shelf, all of them simulated; and replicas that die over it. */
export class SimulatedRack {
  readonly rackId = "rack-1";
  readonly database: TestDatabase;
  readonly simulator: SimulatorProcess;
  readonly deps: RunDeps;
  readonly #replica: RunReplica;
  readonly #bench: ProcessBench;
  readonly #keyFile: string;
  readonly #directory: string;
  readonly #isFetched: boolean;
  readonly #later: string;
  #passed = 0;
  #started = 0;

  private constructor(parts: {
    bench: ProcessBench;
    database: TestDatabase;
    simulator: SimulatorProcess;
    directory: string;
    isFetched: boolean;
  }) {
    this.#bench = parts.bench;
    this.database = parts.database;
    this.simulator = parts.simulator;
    this.#directory = parts.directory;
    this.#later = join(parts.directory, "later");
    writeFileSync(this.#later, "0");
    this.#isFetched = parts.isFetched;
    this.#keyFile = join(parts.directory, "secret-key");
    this.#replica = this.#openReplica("caller");
    this.deps = this.#replica.deps;
  }

  /** `isFetched`: the devices fetch images; otherwise they are sent them. */
  static async open(bench: ProcessBench, { name, isFetched }: { name: string; isFetched: boolean }) {
    const directory = join(bench.directory, name);
    mkdirSync(join(directory, "deaths"), { recursive: true });
    const site = join(directory, "site.json");
    writeFileSync(site, JSON.stringify({ racks: [{ machines: 1, switches: 2, shelves: 1 }] }));
    const simulator = await startSimulatorProcess(bench, { name: `${name}-simulator`, site, seed: 5, speed: SPEED });
    const database = await createTestDatabase();
    const rack = new SimulatedRack({ bench, database, simulator, directory, isFetched });
    await rack.#putDevicesOnRecord();
    return rack;
  }

  async close(): Promise<void> {
    await this.#replica.stop();
    this.simulator.process.signal("SIGTERM");
    await this.simulator.process.exited;
    await this.database.drop();
  }

  /** Its devices are on record and ready; what the rack consists of nobody has said yet. */
  async #putDevicesOnRecord(): Promise<void> {
    const { deps, simulator, rackId } = this;
    const { db } = deps;
    await expectSimulatedSwitches(deps, tester, simulator.controlUrl);
    for (const row of await simulator.inventory())
      await addExpectedPowerShelf(deps, tester, {
        bmcMac: row.bmc_mac_address,
        bmcUsername: row.bmc_username,
        bmcPassword: row.bmc_password,
        serial: row.shelf_serial_number,
        bmcEndpoint: row.bmc_ip_address,
        rackId: row.rack_id,
        metadata: { name: row.metadata.name, description: "", labels: {} },
      });
    for (const one of await simulator.call<readonly SimulatedMachine[]>("GET", "/inventory/machines")) {
      const places = { bmcEndpoint: one.bmc_endpoint, sshEndpoint: one.ssh_endpoint };
      const spec = { ...NOTHING_ELSE, ...places, serial: one.serial, macAddresses: one.mac_addresses, rack: rackId };
      await registerMachine(deps, tester, {
        id: one.machine_id,
        labels: {},
        spec: { ...spec, sshHostKey: "", jumpHosts: [] },
      });
      await setMachineCredentials(deps, tester, {
        machineId: one.machine_id,
        bmcUsername: one.bmc_username,
        bmcPassword: one.bmc_password,
        sshUsername: one.ssh_username,
        sshPrivateKey: one.ssh_private_key,
      });
    }
    // As the loop that checks machines would find them.
    await db.execute("update machines set conditions = $1::jsonb, basis = basis + 1", [JSON.stringify(CHECKED)]);
    await this.#undisturbed(async () => {
      const unready = `select id, state from switches where state <> 'ready' union all select id, state from power_shelves where state <> 'ready'`;
      const count = "select 1 from switches union all select 2 from power_shelves";
      await eventually(async () => (await db.query(unready)).length === 0 && (await db.query(count)).length > 1, {
        what: "switches and shelves are ready",
        within: 60_000,
        seen: async () => JSON.stringify(await db.query("select * from work where last_error is not null")),
      });
    });
  }

  /** Puts firmware of the site on record, as far as it is for these components. Its files are then to be downloaded. */
  async recordFirmware(
    which: "delivered" | "newer",
    wanted: Readonly<Record<string, readonly string[]>>,
  ): Promise<string> {
    type Sku = {
      readonly Type: string;
      readonly Components: { readonly Firmware: readonly { readonly Component: string }[] };
    };
    type Entry = { hardware_type: string; config: { Id: string; BoardSKUs: readonly Sku[] } };
    const catalogue = await this.simulator.call<readonly Entry[]>("GET", "/firmware/catalogue");
    const entry = catalogue.at(which === "newer" ? 1 : 0);
    if (entry === undefined) throw new Error("the site has no firmware");
    const { config, hardware_type: hardwareType } = entry;
    const skus = config.BoardSKUs.map((sku) => ({
      ...sku,
      Components: { Firmware: sku.Components.Firmware.filter((one) => wanted[sku.Type]?.includes(one.Component)) },
    }));
    const configJson = JSON.stringify({
      ...config,
      BoardSKUs: skus.filter((sku) => sku.Components.Firmware.length > 0),
    });
    await createRackFirmware(this.deps, tester, { configJson, token: "NOAUTH", hardwareType });
    return config.Id;
  }

  /** From here on it is known what the rack consists of: it is discovered, and maintained, by itself. */
  async expectRack(): Promise<void> {
    await expectSimulatedRacks(this.deps, tester, this.simulator.controlUrl);
  }

  truths(): Promise<DeviceTruth[]> {
    return this.simulator
      .call<{ id: string }[]>("GET", "/devices")
      .then((devices) =>
        Promise.all(devices.map(({ id }) => this.simulator.call<DeviceTruth>("GET", `/devices/${id}`))),
      );
  }

  async rackState(): Promise<string> {
    const [rack] = await this.database.db.query<{ state: string }>("select state from racks where id = $1", [
      this.rackId,
    ]);
    return rack?.state ?? "";
  }

  /** @throws Error when it is in error, and that is not what is awaited. */
  async isRack(wanted: "ready" | "error"): Promise<boolean> {
    const state = await this.rackState();
    if (state === "error" && wanted !== "error") throw new Error(`the rack is in error: ${await this.#seen()}`);
    return state === wanted;
  }

  async #seen(): Promise<string> {
    const { db } = this.database;
    const tables = [
      "select id, state, state_data, outcome from racks",
      "select id, target_kind, state, outcome, facts from runs where state in ('PENDING', 'RUNNING', 'FAILED')",
      "select * from work where lease_owner is not null or last_error is not null",
    ];
    const rows = await Promise.all(tables.map((text) => db.query(text)));
    return JSON.stringify([...rows, this.deaths()], null, 1);
  }

  setSpeed(speed: "usual" | "slow"): Promise<unknown> {
    return this.simulator.call("PUT", "/speed", { speed: speed === "usual" ? SPEED : SLOW });
  }

  /** Where somebody has died, as `<position> at <fail point>`. */
  deaths(): readonly string[] {
    return readdirSync(join(this.#directory, "deaths")).map(decodeURIComponent).toSorted();
  }

  /** Has replicas work, and die at each place that they come by, each time another one follows, until `isOver`. */
  async dieUntil(what: string, isOver: () => Promise<unknown>, deaths: Deaths): Promise<void> {
    const over = new AbortController();
    const keepers = Array.from({ length: deaths.replicas }, () => this.#keepAlive(deaths, over.signal));
    const failed = Promise.all(keepers).then(() => undefined);
    try {
      const end = await Promise.race([
        failed,
        eventually(
          async () => {
            await this.#letTimePass();
            return isOver().catch((error: unknown) => error);
          },
          {
            what,
            within: 300_000,
            seen: () => this.#seen(),
          },
        ),
      ]);
      if (end instanceof Error) throw end;
    } finally {
      over.abort();
    }
    await failed;
  }

  async #keepAlive({ failPoints, positions }: Deaths, over: AbortSignal): Promise<void> {
    const ended = new Promise<"over">((resolve) =>
      over.addEventListener("abort", () => resolve("over"), { once: true }),
    );
    while (!over.aborted) {
      const instance = `replica-${++this.#started}`;
      const order: RackVictimOrder = {
        ...{ url: this.database.url, keyFile: this.#keyFile, instance, failPoints },
        firmware: { path: join(this.#directory, "firmware"), isFetched: this.#isFetched },
        simulator: { controlUrl: this.simulator.controlUrl, speed: SPEED, slow: SLOW },
        deaths: join(this.#directory, "deaths"),
        later: this.#later,
        ...(positions && { positions: positions.source }),
      };
      const replica: StartedProcess = await startProgram(this.#bench, {
        program: "rack-victim.ts",
        args: [JSON.stringify(order)],
      });
      if ((await Promise.race([replica.exited, ended])) === "over") replica.signal("SIGTERM");
      const exit = await replica.exited;
      if (exit.signal !== "SIGKILL" && !over.aborted)
        throw new Error(`a replica ended by itself: ${replica.transcript()}`);
      if (!over.aborted) await this.#letDevicesSettle();
      await this.#endLeases(instance);
    }
  }

  /**
   * Who dies around a command leaves open whether the device heard of it, and a device gets minutes to show it. So much time passes,
   * for the devices first, and nobody waits for it.
   */
  async #letDevicesSettle(): Promise<void> {
    const deaths = this.deaths();
    const count = (of: RegExp) => deaths.filter((each) => of.test(each)).length;
    const later = count(IS_OPEN) * SETTLES + count(IS_NOT_SENT) * SURELY_SETTLES;
    if (later === this.#passed) return;
    await this.setSpeed("usual");
    await pause((2 * (later - this.#passed)) / SPEED);
    this.#passed = later;
    writeFileSync(this.#later, String(later));
  }

  /** As if the time of its leases had passed: it is dead, and makes no call any more. */
  async #endLeases(owner: string): Promise<void> {
    const { db } = this.database;
    await db.execute(
      "update work set lease_until = now() - interval '1 s', wake_at = least(wake_at, now()) where lease_owner = $1",
      [owner],
    );
    await announceNow(db);
  }

  /** What is to be looked at later is looked at now. What waits to be woken still waits. */
  async #letTimePass(): Promise<void> {
    const { db } = this.database;
    await db.execute(
      `update work set wake_at = now() where lease_owner is null and wake_at > now() and wake_at <> 'infinity'
          and kind in ('rack', 'run', 'host_reprovision', 'rack_firmware')`,
    );
    await announceNow(db);
  }

  #openReplica(instance: string): RunReplica {
    return openRunReplica({
      ...{ url: this.database.url, keyFile: this.#keyFile, instance, handlesAll: true },
      firmware: { path: join(this.#directory, "firmware"), isFetched: this.#isFetched },
    });
  }

  async #undisturbed(during: () => Promise<unknown>): Promise<void> {
    const replica = this.#openReplica("undisturbed");
    try {
      await replica.work();
      await during();
    } finally {
      await replica.stop();
    }
  }
}
