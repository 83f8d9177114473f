import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Config } from "../../config.ts";
import type { Log } from "../../kernel/log.ts";

export interface SimulatorProcess {
  readonly controlUrl: string;
  stop(): Promise<void>;
}

const MOST_COMPLAINTS = 20;
/** The simulator's program: TypeScript in a checkout, JavaScript in a package, as this file is. */
export const SIMULATOR = join(
  import.meta.dirname,
  "..",
  "..",
  "..",
  "simulator",
  `main${extname(import.meta.filename)}`,
);

/** The flags that the simulator takes for this configuration. */
export const simulatorFlags = ({ sim, dataDir }: Config): string[] => [
  "--data-dir",
  join(dataDir, "simulator"),
  "--speed",
  String(sim.speed),
  "--seed",
  String(sim.seed),
  "--site",
  sim.site,
  ...(sim.rackManager === null ? [] : ["--rack-manager", sim.rackManager]),
];

/** Flags of the simulator that are no settings of Millwright: they are handed to it as they are. */
const OWN_FLAGS = ["--fault", "--redfish-port", "--control-port"];

export function takeSimulatorFlags(argv: readonly string[]): { readonly own: string[]; readonly rest: string[] } {
  const own: string[] = [];
  const rest: string[] = [];
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] as string;
    const isOwn = OWN_FLAGS.some((flag) => word === flag || word.startsWith(`${flag}=`));
    (isOwn ? own : rest).push(word);
    if (OWN_FLAGS.includes(word) && at + 1 < argv.length) own.push(argv[++at] as string);
  }
  return { own, rest };
}

/**
 * Starts the simulator as a child in a session of its own, so that Ctrl-C reaches us alone and the devices are there until the
 * last call has been made. It ends with us, whatever ends us: its standard input closes.
 */
export async function startSimulatorProcess({
  config,
  log,
  signal,
  simulatorFlags: more,
}: {
  readonly config: Config;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly simulatorFlags: readonly string[];
}): Promise<SimulatorProcess> {
  const child = spawn(process.execPath, [SIMULATOR, ...simulatorFlags(config), ...more, "--exit-with-parent"], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
  });
  const complaints: string[] = [];
  let isWanted = true;
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (complaints.length < MOST_COMPLAINTS) complaints.push(line);
    log.debug({ line }, "simulator");
  });
  const ended = once(child, "exit");
  void ended.then(([code]) => {
    if (isWanted) log.error({ code }, "the simulator ended by itself: no simulated device answers any more");
  });
  const ready = await Promise.race([
    readyLine(child),
    ended.then(() => undefined),
    once(signal, "abort").then(() => undefined),
  ]);
  if (!ready) {
    isWanted = false;
    child.kill("SIGTERM");
    throw new Error(`the simulator did not start: ${complaints.join(" ") || "it was stopped"}`);
  }
  return {
    controlUrl: ready.controlUrl,
    async stop() {
      isWanted = false;
      child.kill("SIGTERM");
      await ended;
    },
  };
}

async function readyLine(child: ChildProcess): Promise<{ controlUrl: string } | undefined> {
  if (!child.stdout) return undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith("{")) return JSON.parse(line) as { controlUrl: string };
  }
  return undefined;
}
