import { randomBytes } from "node:crypto";
import type { CallContext } from "../../capabilities/call.ts";
import type { RemoteExec, RemoteExit } from "../../capabilities/remote-exec.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import { seconds } from "../../kernel/duration.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { StepLog } from "../step.ts";

/**
 * Scripts that outlive the connection they were started over, and us. Each has a mark, which is persisted before it is started;
 * on the machine a directory of that name holds whether it was started, what it wrote and how it ended. So whoever asks later
 * can tell, and nothing is ever started twice.
 */
export interface DetachedScript {
  readonly mark: string;
  readonly exec: RemoteExec;
  readonly ssh: SshTarget;
  readonly call: CallContext;
}

export type ScriptState =
  | { readonly is: "absent" }
  | { readonly is: "running" }
  /** Begun, not ended, and not there any more: the machine went down under it, or somebody ended it. */
  | { readonly is: "cut_off" }
  | { readonly is: "ended"; readonly code: number };

export const newMark = (): string => randomBytes(12).toString("hex");

/** Within a detached script: `"$DIRECTORY$MILLWRIGHT_MARK"` is its directory. */
export const DIRECTORY = "/var/tmp/millwright-";
const MARKS_ARE_KEPT_DAYS = 7;

/**
 * In a session of its own where the machine can, so that all of it can be ended together. Old marks go when the next script comes; those of this one
 * stay, since they are what a later reader goes by.
 */
const START = `umask 077
dir="${DIRECTORY}$MILLWRIGHT_MARK"
find /var/tmp -maxdepth 1 -name 'millwright-*' -mtime +${MARKS_ARE_KEPT_DAYS} -exec rm -rf {} + 2>/dev/null
if [ -e "$dir/started" ]; then exit 0; fi
mkdir "$dir" || exit 1
printf '%s' "$MILLWRIGHT_SCRIPT" > "$dir/script"
unset MILLWRIGHT_SCRIPT
echo yes > "$dir/started"
launch=""
if command -v setsid >/dev/null 2>&1; then launch=setsid; fi
$launch nohup sh -c 'echo $$ > "$1/pid"; sh -c "$(cat "$1/script")"; echo $? > "$1/exit"' millwright "$dir" > "$dir/stdout" 2> "$dir/stderr" < /dev/null &
`;

/** A process of the same number after a reboot is told apart by the mark in its environment. */
const STATE = `dir="${DIRECTORY}$MILLWRIGHT_MARK"
if [ ! -e "$dir/started" ]; then echo absent; exit 0; fi
if [ -s "$dir/exit" ]; then echo "ended $(cat "$dir/exit")"; exit 0; fi
if [ ! -s "$dir/pid" ]; then echo running; exit 0; fi
pid="$(cat "$dir/pid")"
if grep -q "MILLWRIGHT_MARK=$MILLWRIGHT_MARK" "/proc/$pid/environ" 2>/dev/null; then echo running; exit 0; fi
if [ -s "$dir/exit" ]; then echo "ended $(cat "$dir/exit")"; else echo cut_off; fi
`;

const NOTE = `dir="${DIRECTORY}$MILLWRIGHT_MARK"
if [ ! -e "$dir/$MILLWRIGHT_AFTER" ]; then exit 1; fi
echo yes > "$dir/$MILLWRIGHT_NOTE"
`;

const READ = `file="${DIRECTORY}$MILLWRIGHT_MARK/$MILLWRIGHT_STREAM"
if [ ! -e "$file" ]; then exit 0; fi
if [ "$MILLWRIGHT_FROM" = 0 ]; then cat "$file"; else tail -c "+$(($MILLWRIGHT_FROM + 1))" "$file"; fi
`;

const END = `dir="${DIRECTORY}$MILLWRIGHT_MARK"
if [ ! -s "$dir/pid" ] || [ -s "$dir/exit" ]; then exit 0; fi
pid="$(cat "$dir/pid")"
if grep -q "MILLWRIGHT_MARK=$MILLWRIGHT_MARK" "/proc/$pid/environ" 2>/dev/null; then
  kill -s TERM -- "-$pid" 2>/dev/null || kill -s TERM "$pid" 2>/dev/null
fi
exit 0
`;

const QUICK = seconds(20);

/** Starts it, unless it was started before. */
export async function startDetached(
  script: DetachedScript,
  what: { readonly text: string; readonly env: Readonly<Record<string, string>> },
): Promise<void> {
  const own = Object.keys(what.env).find((name) => name.startsWith("MILLWRIGHT_"));
  if (own !== undefined) throw new StepFailure("fail", `args.${own}: names that begin with MILLWRIGHT_ are ours`);
  const exit = await ask(script, START, { ...what.env, MILLWRIGHT_SCRIPT: what.text });
  if (exit.code !== 0)
    throw new StepFailure("retry", `the script could not be started: preparing it ended with exit code ${exit.code}`);
}

export async function readState(script: DetachedScript): Promise<ScriptState> {
  const { code, output } = await ask(script, STATE, {});
  const [word = "", number = ""] = output.trim().split(/\s+/);
  switch (word) {
    case "absent":
    case "running":
    case "cut_off":
      return { is: word };
    case "ended":
      if (/^\d{1,3}$/.test(number)) return { is: "ended", code: Number(number) };
  }
  throw new StepFailure("retry", `the machine does not tell how far the script is (exit code ${code})`);
}

/** Leaves a note for the script, in its directory, once it has left one of its own there; false until then. */
export async function leaveNote(script: DetachedScript, note: string, after: string): Promise<boolean> {
  return (await ask(script, NOTE, { MILLWRIGHT_NOTE: note, MILLWRIGHT_AFTER: after })).code === 0;
}

/** Ends it and all that it started, if it still runs; best effort. */
export const endDetached = async (script: DetachedScript): Promise<void> => {
  await ask(script, END, {});
};

/** Up to where a look read, where it began, and by which basis of its run. */
interface Reading {
  readonly from: number;
  readonly began: number;
  readonly basis: number;
}

/**
 * How far this process has passed on what a script wrote; another process begins anew, so that nothing is left out. A look that
 * passed something on and was written has raised the basis of its run: under the same basis nobody has heard of it yet.
 */
export class OutputReader {
  readonly #read = new Map<string, Reading>();
  readonly #most: number;

  constructor(most = 1_000) {
    this.#most = most;
  }

  /** Passes on what was written since the last time. */
  async passOn(
    script: DetachedScript,
    { log, basis }: { readonly log: StepLog; readonly basis: number },
  ): Promise<void> {
    for (const stream of ["stdout", "stderr"] as const) {
      const key = `${script.mark}/${stream}`;
      const last = this.#read.get(key);
      const began = last === undefined ? 0 : last.basis === basis ? last.began : last.from;
      let from = began;
      await ask(script, READ, { MILLWRIGHT_STREAM: stream, MILLWRIGHT_FROM: String(from) }, (text, written) => {
        if (written !== "stdout") return;
        from += text.length;
        log(text, stream);
      });
      this.#note(key, { from, began, basis });
    }
  }

  forget({ mark }: Pick<DetachedScript, "mark">): void {
    for (const stream of ["stdout", "stderr"]) this.#read.delete(`${mark}/${stream}`);
  }

  #note(key: string, reading: Reading): void {
    this.#read.delete(key);
    this.#read.set(key, reading);
    for (const oldest of this.#read.keys()) {
      if (this.#read.size <= this.#most * 2) return;
      this.#read.delete(oldest);
    }
  }
}

function ask(
  { mark, exec, ssh, call }: DetachedScript,
  script: string,
  env: Readonly<Record<string, string>>,
  onOutput?: (text: Uint8Array, stream: "stdout" | "stderr") => void,
): Promise<RemoteExit> {
  const asked = { script, env: { ...env, MILLWRIGHT_MARK: mark }, timeout: QUICK };
  return exec.run(ssh, onOutput === undefined ? asked : { ...asked, onOutput }, call);
}
