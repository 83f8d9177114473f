import { type ExplainResponse, ExplainService } from "../../contract/millwright/v1/explain_pb.js";
import { createProgram } from "../../src/cli/program.ts";
import { runCli } from "../../src/cli/run-cli.ts";
import { addExpectedPowerShelf } from "../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { listPowerShelves, type PowerShelfRecord } from "../../src/store/power-shelf/power-shelves.ts";
import { createFakeTerminal } from "./cli/fake-terminal.ts";
import { eventually } from "./eventually.ts";
import { type RunBench, type RunSurface, startRunBench, tester } from "./run-bench.ts";

/** Splits a suggested command into words, as a shell would; a word in angle brackets is for the operator to fill in. */
export function wordsOf(command: string, given: Readonly<Record<string, string>> = {}): string[] {
  const [program, ...words] = command.split(/\s+/);
  if (program !== "millwright") throw new Error(`${command} does not begin with millwright`);
  return words.map((word) => (word.startsWith("<") ? (given[word] ?? word) : word));
}

/** Fails when the command line would not understand the command. Nothing is carried out. */
export async function checkCommand(command: string): Promise<void> {
  const said: string[] = [];
  const sink = { write: (text: string) => void said.push(text) };
  const program = createProgram({ version: "1", stdout: sink, stderr: sink, run: () => async () => {} });
  // What commander writes to is not inherited by commands that were made before it was set; what it throws is.
  try {
    await program.parseAsync(wordsOf(command), { from: "user" });
  } catch (error) {
    throw new Error(`the command line does not understand ${JSON.stringify(command)}: ${said.join("")}`, {
      cause: error,
    });
  }
}

/** Explains, and checks every command that is suggested on the way. */
export async function explainOn(surface: RunSurface, kind: string, id: string): Promise<ExplainResponse> {
  const explanation = await surface.client(ExplainService).explain({ kind, id });
  for (const { command } of explanation.nextCommands) await checkCommand(command);
  return explanation;
}

/** Runs a suggested command through the command line itself. */
export async function carryOut(
  surface: Pick<RunSurface, "transport">,
  command: string,
  given: Readonly<Record<string, string>> = {},
  password?: string,
): Promise<string> {
  const env = password === undefined ? {} : { MILLWRIGHT_BMC_PASSWORD: password };
  const terminal = createFakeTerminal({ env });
  const { transport } = surface;
  const code = await runCli([...wordsOf(command, given), "-o", "json"], { version: "1", terminal, transport });
  if (code !== 0) throw new Error(`${command} ended with exit code ${code}: ${terminal.err()}`);
  return terminal.out();
}

export interface SimulatedShelf {
  readonly id: string;
  readonly serial: string;
  readonly power: string;
}

export interface ExplainBench extends RunBench {
  /** Power shelves that are ready, with their devices. */
  readonly shelves: readonly { readonly shelf: PowerShelfRecord; readonly device: SimulatedShelf }[];
  shelf(id: string): Promise<PowerShelfRecord>;
  /** Breaks something; the answer mends it again. */
  break(rule: object): Promise<() => Promise<void>>;
}

interface InventoryRow {
  readonly bmc_mac_address: string;
  readonly bmc_username: string;
  readonly bmc_password: string;
  readonly shelf_serial_number: string;
  readonly bmc_ip_address: string;
  readonly rack_id: string;
  readonly metadata: { readonly name: string };
}

/** A simulated site of machines and power shelves, all on record, and a controller that works on them. */
export async function startExplainBench(options: {
  readonly site: string;
  readonly speed: number;
}): Promise<ExplainBench> {
  const bench = await startRunBench(options);
  const inventory = await bench.control<readonly InventoryRow[]>("GET", "/inventory");
  for (const row of inventory) {
    await addExpectedPowerShelf(bench.deps, tester, {
      bmcMac: row.bmc_mac_address,
      bmcUsername: row.bmc_username,
      bmcPassword: row.bmc_password,
      serial: row.shelf_serial_number,
      bmcEndpoint: row.bmc_ip_address,
      rackId: row.rack_id,
      metadata: { name: row.metadata.name, description: "", labels: {} },
    });
  }
  const ready = await eventually(
    async () => {
      const all = await listPowerShelves(bench.db);
      return all.length === inventory.length && all.every(({ state }) => state.name === "ready") && all;
    },
    { what: "all shelves are ready" },
  );
  const devices = await bench.control<readonly SimulatedShelf[]>("GET", "/devices?kind=power_shelf");
  const deviceOf = ({ facts }: PowerShelfRecord) => {
    const device = devices.find(({ serial }) => serial === facts.serial);
    if (!device) throw new Error(`no device has serial ${facts.serial}`);
    return device;
  };
  return {
    ...bench,
    shelves: ready.map((shelf) => ({ shelf, device: deviceOf(shelf) })),
    async shelf(id) {
      const [shelf] = await listPowerShelves(bench.db, { ids: [id] });
      if (!shelf) throw new Error(`power shelf ${id} is gone`);
      return shelf;
    },
    async break(rule) {
      const { id } = await bench.control<{ id: string }>("POST", "/faults", rule);
      return () => bench.control("DELETE", `/faults/${id}`);
    },
  };
}

/** Explains again and again until the answer satisfies, and returns it. */
export async function untilExplained(
  surface: RunSurface,
  [kind, id]: readonly [kind: string, id: string],
  isIt: (explanation: ExplainResponse) => boolean,
  what: string,
  within = 60_000,
): Promise<ExplainResponse> {
  let last: ExplainResponse | undefined;
  return eventually(
    async () => {
      last = await explainOn(surface, kind, id);
      return isIt(last) && last;
    },
    {
      what,
      within,
      seen: () => JSON.stringify(last, (_, value) => (typeof value === "bigint" ? Number(value) : value), 1),
    },
  );
}
