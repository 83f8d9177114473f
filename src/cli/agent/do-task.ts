import { spawn } from "node:child_process";
import type { AgentConfig, HostCommand } from "./config.ts";
import type { TaskType, TrustedTask } from "./trusted-task.ts";
import { isDeviceBlank, wipeDevice } from "./wipe.ts";

export interface TaskOutcome {
  readonly outcome: "completed" | "failed";
  readonly result: Readonly<Record<string, unknown>>;
  readonly message: string;
}

const done = (result: TaskOutcome["result"], message = ""): TaskOutcome => ({ outcome: "completed", result, message });
const failed = (message: string, result: TaskOutcome["result"] = {}): TaskOutcome => ({
  outcome: "failed",
  result,
  message,
});
const cannot = (what: string, setting: string): TaskOutcome =>
  failed(`this agent cannot ${what}: its configuration has no ${setting}`);

type Doing = (config: AgentConfig, params: TrustedTask["params"], signal: AbortSignal) => Promise<TaskOutcome>;

const DOING: Readonly<Record<TaskType, Doing>> = {
  "node.drain": ({ drain }, _, signal) => byCommand(drain, "drain the node", "drain", { drained: true }, signal),
  "node.cleanup_storage": cleanUpStorage,
  "node.scrub_gpu": ({ gpu }, _, signal) => byCommand(gpu, "scrub GPUs", "gpu", { scrubbed: true }, signal),
  "node.validate_clean": validateClean,
  async "node.uninstall"({ uninstall }, _, signal) {
    if (uninstall === null) return done({ uninstalled: true });
    return byCommand(uninstall, "uninstall", "uninstall", { uninstalled: true }, signal);
  },
  async "diag.health_probe"(config, _, signal) {
    const { health, message } = await probeHealth(config, signal);
    return done({ health }, message);
  },
};

/** Does what the owner of the host lets the agent do, and says what came of it. It never throws but when it is stopped. */
export async function doTask(config: AgentConfig, task: TrustedTask, signal: AbortSignal): Promise<TaskOutcome> {
  try {
    return await DOING[task.type](config, task.params, signal);
  } catch (error) {
    signal.throwIfAborted();
    return failed(shortened(error instanceof Error ? error.message : String(error)));
  }
}

export async function probeHealth(
  { health }: AgentConfig,
  signal: AbortSignal,
): Promise<{ readonly health: "healthy" | "unhealthy"; readonly message: string }> {
  if (health === null) return { health: "healthy", message: "" };
  const { code, output } = await runCommand(health, signal);
  return { health: code === 0 ? "healthy" : "unhealthy", message: output };
}

async function byCommand(
  command: HostCommand | null,
  what: string,
  setting: string,
  result: TaskOutcome["result"],
  signal: AbortSignal,
): Promise<TaskOutcome> {
  if (command === null) return cannot(what, `${setting}.command`);
  const { code, output } = await runCommand(command, signal);
  return code === 0 ? done(result, output) : failed(`${command.command[0]} ended with ${code}: ${output}`);
}

/** Only devices that the configuration lists, all of them unless fewer are named. One that is not listed has nothing wiped at all. */
async function cleanUpStorage(
  { devices: listed }: AgentConfig,
  { devices: named }: TrustedTask["params"],
  signal: AbortSignal,
): Promise<TaskOutcome> {
  if (listed.length === 0) return cannot("clean storage", "storage.devices");
  const wanted: readonly unknown[] = named === undefined ? listed : Array.isArray(named) ? named : [named];
  const odd = wanted.find((device) => !listed.some((each) => each === device));
  if (odd !== undefined) return failed(`${shortened(String(odd))} is not in storage.devices: nothing was wiped`);
  const results: { device: string; wiped: boolean; problem?: string }[] = [];
  for (const device of listed.filter((each) => wanted.includes(each))) {
    try {
      await wipeDevice(device, signal);
      results.push({ device, wiped: true });
    } catch (error) {
      signal.throwIfAborted();
      results.push({
        device,
        wiped: false,
        problem: shortened(error instanceof Error ? error.message : String(error)),
      });
    }
  }
  const problems = results.flatMap(({ problem }) => problem ?? []);
  return problems.length === 0 ? done({ devices: results }) : failed(problems.join("; "), { devices: results });
}

async function validateClean(
  { devices, validate }: AgentConfig,
  _: unknown,
  signal: AbortSignal,
): Promise<TaskOutcome> {
  if (devices.length === 0 && validate === null)
    return cannot("tell whether the node is clean", "storage.devices and no validate.command");
  const findings: string[] = [];
  for (const device of devices) if (!(await isDeviceBlank(device))) findings.push(`${device} is not blank`);
  if (validate !== null) {
    const { code, output } = await runCommand(validate, signal);
    if (code !== 0) findings.push(`${validate.command[0]} ended with ${code}: ${output}`);
  }
  return done({ clean: findings.length === 0, findings });
}

const MOST_OUTPUT = 1_000;
/** Without control characters, as a message must be. */
const shortened = (text: string): string =>
  text
    .replace(/[\p{C}\s]+/gu, " ")
    .trim()
    .slice(0, MOST_OUTPUT);

/** Without a shell, and with nothing that the server has sent. */
function runCommand(
  { command, timeoutSeconds }: HostCommand,
  signal: AbortSignal,
): Promise<{ readonly code: number | string; readonly output: string }> {
  const [program = "", ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: timeoutSeconds * 1_000,
      killSignal: "SIGKILL",
      signal,
    });
    let output = "";
    const take = (chunk: Buffer) => {
      if (output.length < MOST_OUTPUT) output += chunk.toString("utf8");
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", reject);
    child.on("close", (code, by) => resolve({ code: code ?? by ?? "unknown", output: shortened(output) }));
  });
}
