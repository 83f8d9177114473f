import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { setTimeout as pause } from "node:timers/promises";
import { fingerprintOf, isFingerprint, isSameHostKey } from "../../capabilities/host-key.ts";
import type { Play, Playbooks } from "../../capabilities/local/playbooks.ts";
import type { Provider } from "../../capabilities/provider.ts";
import type { RemoteExec } from "../../capabilities/remote-exec.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import type { StreamCall } from "../../capabilities/stream.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { allowedAddress } from "../transport/allowed-networks.ts";
import { type KnownTarget, type PlayFiles, sweepPlayFiles, writePlayFiles } from "./play-files.ts";
import { SUPERVISOR } from "./supervisor.ts";

const COMMAND = "ansible-playbook";
const BEAT = seconds(1);
/** Without a sign of life from us for so long, a play is ended: less than a takeover waits for (`longestChunk` of the step). */
const PATIENCE_SECONDS = "3";
/** What was said before the end arrives within it. A process that got away may hold the output open for longer. */
const LAST_WORDS = seconds(0.5);
const MOST_OUTPUT = 1024 * 1024;

export interface AnsibleOptions {
  /** Reads the host key that is to be pinned where only its fingerprint is on record. */
  readonly exec: Pick<RemoteExec, "readHostKey">;
  readonly mayReach?: ((address: string) => boolean) | undefined;
  /** Where its programs are looked for. Absent: where the server's own are. */
  readonly path?: string;
}

/** Playbooks, where `ansible-playbook` is installed; otherwise nothing. */
export function createAnsibleProvider({ exec, mayReach, path = process.env.PATH ?? "" }: AnsibleOptions): Provider {
  if (!isInstalled(path)) return { name: "ansible", can: {} };
  void sweepPlayFiles();
  const playbooks: Playbooks = {
    async run(target, play, stream) {
      const known = await knownTarget(target, { exec, mayReach }, stream);
      const files = await writePlayFiles(known, play, path);
      // Its supervisor removes them as well, unless it could not be started, or was killed.
      return carryOut(files, play, stream).finally(() => files.remove().catch(() => undefined));
    },
  };
  return { name: "ansible", can: { playbooks } };
}

function isInstalled(path: string): boolean {
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, COMMAND), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * With the whole key that the machine must show, and the address that the allowed networks were checked for: a name could resolve to
 * another one when the play asks.
 */
async function knownTarget(
  target: SshTarget,
  { exec, mayReach }: Pick<AnsibleOptions, "exec" | "mayReach">,
  call: StreamCall,
): Promise<KnownTarget> {
  const [first] = target.jumpHosts;
  const unknown = target.jumpHosts.find(({ hostKey }) => isFingerprint(hostKey));
  if (unknown)
    throw new StepFailure(
      "invalid_input",
      `jump host ${unknown.address} is on record with the fingerprint of its host key; a playbook needs the whole key: machine update --jump-host`,
    );
  const hostKey =
    target.hostKey === null || isFingerprint(target.hostKey) ? await exec.readHostKey(target, call) : target.hostKey;
  if (target.hostKey !== null && !isSameHostKey(target.hostKey, hostKey))
    throw new StepFailure(
      "host_key_changed",
      `SSH ${target.address} shows host key ${fingerprintOf(hostKey)}, but ${fingerprintOf(target.hostKey)} is pinned`,
      { facts: { at: "ssh", shown: fingerprintOf(hostKey), expected: fingerprintOf(target.hostKey) } },
    );
  const reach = (address: string) => allowedAddress(address, mayReach, { at: "ssh", name: "SSH" });
  if (first === undefined) return { ...target, hostKey, address: await reach(target.address) };
  const jumpHosts = [{ ...first, address: await reach(first.address) }, ...target.jumpHosts.slice(1)];
  return { ...target, hostKey, jumpHosts };
}

async function carryOut({ directory, env, args }: PlayFiles, play: Play, stream: StreamCall): Promise<number | null> {
  const command = ["-c", SUPERVISOR, "play", directory, PATIENCE_SECONDS, COMMAND, ...args];
  const child = spawn("bash", command, { cwd: directory, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
  const ended = endOf(child);
  ended.catch(() => undefined);
  if (child.pid === undefined) return ended; // then it may have no streams either
  const said = { bytes: 0 };
  for (const name of ["stdout", "stderr"] as const) passOn(child[name], (text) => say(play, said, text, name));
  child.stdin.on("error", () => undefined); // it has ended: its exit tells
  try {
    for (let isOver = false; !isOver; ) {
      // Each second that it goes on is a chunk: it is had only while the lease is ours.
      isOver = await stream.sendChunk(async () => {
        child.stdin.write("\n");
        const tick = new AbortController();
        const beat = pause(BEAT, false, { signal: tick.signal }).catch(() => false);
        return Promise.race([ended.then(() => true), beat]).finally(() => tick.abort());
      });
    }
    return await ended;
  } finally {
    child.stdin.end(); // its supervisor ends whatever still runs
    await ended.catch(() => undefined);
  }
}

/** By its exit, and not by the end of its output. */
function endOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
    child.once("exit", () => {
      const cut = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, LAST_WORDS);
      child.once("close", () => clearTimeout(cut));
    });
  });
}

/** Characters travel whole, since pieces of the log are read one by one. */
function passOn(output: NodeJS.ReadableStream, say: (text: Buffer) => void): void {
  const decoder = new StringDecoder("utf8");
  output.on("data", (bytes: Buffer) => say(Buffer.from(decoder.write(bytes))));
  output.on("end", () => say(Buffer.from(decoder.end())));
}

function say(play: Play, said: { bytes: number }, text: Buffer, stream: "stdout" | "stderr"): void {
  if (text.length === 0 || said.bytes > MOST_OUTPUT) return;
  said.bytes += text.length;
  play.onOutput(text, stream);
  if (said.bytes > MOST_OUTPUT) play.onOutput(Buffer.from("\n(more output is not kept)\n"), "stderr");
}
