import { readFileSync } from "node:fs";
import { isAbsolute } from "node:path";
import { UsageError } from "../client/errors.ts";

/** A program with its arguments, as the owner of the host wrote it down: nothing that the server sends becomes part of it. */
export interface HostCommand {
  readonly command: readonly string[];
  readonly timeoutSeconds: number;
}

/** What the owner of the host lets the agent do. What is left out it cannot do, and says so. */
export interface AgentConfig {
  /** Keeps new work off the node, and returns once the old is gone. */
  readonly drain: HostCommand | null;
  /** The only devices that may ever be wiped. */
  readonly devices: readonly string[];
  readonly gpu: HostCommand | null;
  readonly validate: HostCommand | null;
  readonly health: HostCommand | null;
  readonly uninstall: HostCommand | null;
}

const COMMANDS = ["drain", "gpu", "validate", "health", "uninstall"] as const;
const USUAL_TIMEOUT_SECONDS = 600;

/** A file that is not there lets the agent do nothing but say how it is. */
export function readAgentConfig(path: string): AgentConfig {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return parseAgentConfig({}, path);
    throw new UsageError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  try {
    return parseAgentConfig(JSON.parse(text), path);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${path} is no JSON`);
  }
}

export function parseAgentConfig(given: unknown, path: string): AgentConfig {
  if (!isObject(given)) throw new UsageError(`${path} must hold an object`);
  const known: readonly string[] = [...COMMANDS, "storage"];
  const odd = Object.keys(given).find((name) => !known.includes(name));
  if (odd !== undefined) throw new UsageError(`${path}: ${odd} is unknown; known are ${known.join(", ")}`);
  const commands = Object.fromEntries(COMMANDS.map((name) => [name, commandOf(given[name], `${path}: ${name}`)]));
  return { ...(commands as Record<(typeof COMMANDS)[number], HostCommand | null>), devices: devicesOf(given, path) };
}

function commandOf(given: unknown, where: string): HostCommand | null {
  if (given === undefined) return null;
  if (!isObject(given)) throw new UsageError(`${where} must be an object with command`);
  const { command, timeout_seconds = USUAL_TIMEOUT_SECONDS } = given;
  const [program] = Array.isArray(command) ? command : [];
  if (!isListOfText(command) || typeof program !== "string" || !isAbsolute(program))
    throw new UsageError(`${where}.command must be a list: the absolute path of a program, and its arguments`);
  if (typeof timeout_seconds !== "number" || !(timeout_seconds > 0))
    throw new UsageError(`${where}.timeout_seconds must be a number of seconds`);
  return { command, timeoutSeconds: timeout_seconds };
}

function devicesOf({ storage = {} }: Readonly<Record<string, unknown>>, path: string): readonly string[] {
  if (!isObject(storage)) throw new UsageError(`${path}: storage must be an object with devices`);
  const { devices = [] } = storage;
  if (!isListOfText(devices) || !devices.every(isAbsolute))
    throw new UsageError(`${path}: storage.devices must be a list of absolute paths`);
  return devices;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isListOfText = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === "string");
