import { randomUUID } from "node:crypto";
import type { RemoteExit } from "../../capabilities/remote-exec.ts";
import type { FakeMachine, FakeScript } from "./fake-machine.ts";
import { clusterOfEndpoint } from "./fake-places.ts";
import { runInFakeShell } from "./fake-shell.ts";
import type { FakeWorld } from "./fake-world.ts";

/** The variables by which steps start scripts that outlive their connection, and ask after them. */
type Env = Readonly<Record<string, string>>;

const answer = (output = "", code = 0): RemoteExit => ({ code, signal: null, output });

/** Undefined when the script is none of those. */
export function answerAboutDetached(
  world: FakeWorld,
  machine: FakeMachine,
  { script, env }: { readonly script: string; readonly env: Env },
): RemoteExit | undefined {
  const mark = env.MILLWRIGHT_MARK;
  if (mark === undefined) return undefined;
  const known = machine.scripts.get(mark);
  if (env.MILLWRIGHT_SCRIPT !== undefined) {
    if (known === undefined) machine.scripts.set(mark, begin(world, machine, env.MILLWRIGHT_SCRIPT, env));
    return answer();
  }
  if (env.MILLWRIGHT_STREAM !== undefined) {
    const written = env.MILLWRIGHT_STREAM === "stdout" ? (known?.output ?? "") : "";
    return answer(
      Buffer.from(written)
        .subarray(Number(env.MILLWRIGHT_FROM ?? 0))
        .toString(),
    );
  }
  if (env.MILLWRIGHT_NOTE !== undefined) {
    if (known === undefined || machine.now < known.endsAt) return answer("", 1);
    known.notes.add(env.MILLWRIGHT_NOTE);
    return answer();
  }
  if (script.includes("kill -s TERM")) {
    machine.scripts.delete(mark);
    return answer();
  }
  if (script.includes('/stop" || exit')) known?.notes.add(STOP);
  return answer(`${stateOf(machine, known)}\n`);
}

/** The note by which a script that waits for another one is told to take back what it did. */
const STOP = "stop";
const TAKEN_BACK = 9;

function stateOf(machine: FakeMachine, script: FakeScript | undefined): string {
  if (script === undefined) return "absent";
  const isOver = machine.now >= script.endsAt && (script.awaits === null || script.notes.has(script.awaits));
  if (isOver) return `ended ${script.code}`;
  if (script.awaits !== null && script.notes.has(STOP)) return `ended ${TAKEN_BACK}`;
  return script.bootId === machine.bootId ? "running" : "cut_off";
}

const JOIN_LINES = [
  "preflight checks",
  "fetching the cluster's configuration",
  "writing certificates",
  "starting the kubelet",
  "joined",
];

function begin(world: FakeWorld, machine: FakeMachine, text: string, env: Env): FakeScript {
  const startedAt = machine.now;
  const common = { startedAt, bootId: machine.bootId ?? "", awaits: null, notes: new Set<string>() };
  if (env.JOIN_ENDPOINT !== undefined) {
    const endsAt = startedAt + world.takes.join;
    if (world.fails("join")) return { ...common, endsAt, code: 1, output: "[join] set to fail\n" };
    machine.joined ??= { cluster: clusterOfEndpoint(env.JOIN_ENDPOINT), at: endsAt, uid: randomUUID() };
    return { ...common, endsAt, code: 0, output: JOIN_LINES.map((line) => `[join] ${line}\n`).join("") };
  }
  if (env.NET_ROLLBACK !== undefined) {
    const output = "[net] applied; waiting to be reached\n";
    return { ...common, endsAt: startedAt + world.takes.netboot, code: 0, output, awaits: "confirmed" };
  }
  const { stdout, stderr, code } = runInFakeShell(text, env);
  const output = `[ssh] a fake machine runs nothing\n${stdout}${stderr}`;
  return { ...common, endsAt: startedAt + world.takes.ssh, code, output };
}
