import { randomBytes } from "node:crypto";
import type { CallContext } from "../../../capabilities/call.ts";
import type { RemoteExec, RemoteExit } from "../../../capabilities/remote-exec.ts";
import type { SshTarget } from "../../../capabilities/ssh-target.ts";
import { StepFailure } from "../../../kernel/errors.ts";
import { seconds } from "../../../kernel/time/duration.ts";
import { findReserved } from "../../model/plan/payloads.ts";
import type { LogStream } from "../../model/step.ts";

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
  /** Whoever asks about it needs the same rights: its directory is readable to its account alone. */
  readonly asRoot?: true;
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
/** The exit code of a script that was told to stop before it had begun. */
const STOPPED = 143;

/** A script that could not be kept whole is not begun: half of one does what nobody asked for. */
const NO_ROOM = 28;

/**
 * In a session of its own where the machine can, so that all of it can be ended together. Old marks go when the next script comes; those of this one
 * stay, since they are what a later reader goes by. A disk that fills up under it leaves the little room for how it ended, and whoever was told to
 * stop before it was begun does not begin.
 */
const START = `umask 077
dir="${DIRECTORY}$MILLWRIGHT_MARK"
find /var/tmp -maxdepth 1 -name 'millwright-*' -mtime +${MARKS_ARE_KEPT_DAYS} -exec rm -rf {} + 2>/dev/null
if [ -s "$dir/started" ]; then exit 0; fi
mkdir "$dir" || exit 1
kept=no
if printf '%s' "$MILLWRIGHT_SCRIPT" > "$dir/script" && [ "$(cat "$dir/script"; echo .)" = "$MILLWRIGHT_SCRIPT." ]; then
  if echo room > "$dir/room" && [ -s "$dir/room" ] && echo yes > "$dir/started" && [ -s "$dir/started" ]; then kept=yes; fi
fi
if [ "$kept" = no ]; then
  rm -rf "$dir"
  exit ${NO_ROOM}
fi
unset MILLWRIGHT_SCRIPT
launch=""
if command -v setsid >/dev/null 2>&1; then launch=setsid; fi
$launch nohup sh -c 'if ! echo $$ > "$1/pid"; then true > "$1/stop"; exit 1; fi
if [ -e "$1/stop" ]; then
  code=${STOPPED}
else
  sh -c "$(cat "$1/script")"
  code=$?
fi
rm -f "$1/room"
echo "$code" > "$1/exit"' millwright "$dir" > "$dir/stdout" 2> "$dir/stderr" < /dev/null &
`;

/**
 * A process of the same number after a reboot is told apart by the mark in its environment. One that was stopped before it was begun has ended:
 * under its mark nothing can be started any more, so that whoever goes on must take another.
 */
const STATE = `dir="${DIRECTORY}$MILLWRIGHT_MARK"
if [ ! -s "$dir/started" ]; then
  if [ -e "$dir/stop" ]; then echo "ended ${STOPPED}"; else echo absent; fi
  exit 0
fi
if [ -s "$dir/exit" ]; then echo "ended $(cat "$dir/exit")"; exit 0; fi
if [ ! -s "$dir/pid" ]; then
  if [ -e "$dir/stop" ]; then echo cut_off; else echo running; fi
  exit 0
fi
pid="$(cat "$dir/pid")"
if grep -q "MILLWRIGHT_MARK=$MILLWRIGHT_MARK" "/proc/$pid/environ" 2>/dev/null; then echo running; exit 0; fi
if [ -s "$dir/exit" ]; then echo "ended $(cat "$dir/exit")"; else echo cut_off; fi
`;

/** Where it was never begun the directory is taken, so that a start which is still under way comes too late. */
const STOP = `umask 077
mkdir "${DIRECTORY}$MILLWRIGHT_MARK" 2>/dev/null
true > "${DIRECTORY}$MILLWRIGHT_MARK/stop" || exit 1
`;

const NOTE = `dir="${DIRECTORY}$MILLWRIGHT_MARK"
if [ ! -e "$dir/$MILLWRIGHT_AFTER" ]; then exit 1; fi
true > "$dir/$MILLWRIGHT_NOTE"
`;

const READ = `file="${DIRECTORY}$MILLWRIGHT_MARK/$MILLWRIGHT_STREAM"
if [ ! -e "$file" ]; then exit 0; fi
if [ "$MILLWRIGHT_FROM" = 0 ]; then cat "$file"; else tail -c "+$(($MILLWRIGHT_FROM + 1))" "$file"; fi
`;

const STILL_RUNS = 3;

/**
 * All that carries the mark in its environment belongs to it. Asked to end first; what does not within three seconds is made to. Without the mark in
 * our own environment, or we would find ourselves.
 */
const END = `${STOP}mark="$MILLWRIGHT_MARK"
unset MILLWRIGHT_MARK
dir="${DIRECTORY}$mark"
if [ ! -s "$dir/pid" ] || [ -s "$dir/exit" ]; then exit 0; fi
pid="$(cat "$dir/pid")"
group=""
if grep -q "MILLWRIGHT_MARK=$mark" "/proc/$pid/environ" 2>/dev/null; then group="-$pid"; fi
turn=0
while [ "$turn" -lt 45 ]; do
  left="$(grep -ls "MILLWRIGHT_MARK=$mark" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\\n')"
  if [ -z "$left" ]; then exit 0; fi
  if [ "$turn" = 0 ]; then kill -s TERM -- $group $left 2>/dev/null; fi
  if [ "$turn" -ge 30 ]; then kill -s KILL -- $group $left 2>/dev/null; fi
  sleep 0.1 2>/dev/null || sleep 1
  turn=$((turn + 1))
done
exit ${STILL_RUNS}
`;

const QUICK = seconds(20);

/** Starts it, unless it was started before. */
export async function startDetached(
  script: DetachedScript,
  what: { readonly text: string; readonly env: Readonly<Record<string, string>> },
): Promise<void> {
  // Runs that were started by plans of long ago were not held against it.
  const reserved = findReserved(what.env);
  if (reserved) throw new StepFailure("invalid_input", `args.${reserved.name}: ${reserved.why}`);
  const exit = await ask(script, START, { ...what.env, MILLWRIGHT_SCRIPT: what.text });
  if (exit.code === 0) return;
  const why =
    exit.code === NO_ROOM
      ? "the machine's /var/tmp has no room for it, or cannot be written: nothing of it was carried out"
      : `preparing it ended with exit code ${exit.code}`;
  throw new StepFailure("script_failed", `the script could not be started: ${why}`);
}

export const readState = async (script: DetachedScript): Promise<ScriptState> => stateIn(await ask(script, STATE, {}));

/** Tells it to stop, by a file `stop` in its directory that it may look for, and how far it is; one that was not begun never is. */
export const stopDetached = async (script: DetachedScript): Promise<ScriptState> =>
  stateIn(await ask(script, `${STOP}${STATE}`, {}));

function stateIn({ code, output }: RemoteExit): ScriptState {
  const [word = "", number = ""] = output.trim().split(/\s+/);
  switch (word) {
    case "absent":
    case "running":
    case "cut_off":
      return { is: word };
    case "ended":
      if (/^\d{1,3}$/.test(number)) return { is: "ended", code: Number(number) };
  }
  throw new StepFailure("script_failed", `the machine does not tell how far the script is (exit code ${code})`);
}

/** Leaves a note for the script, in its directory, once it has left one of its own there; false until then. */
export async function leaveNote(script: DetachedScript, note: string, after: string): Promise<boolean> {
  return (await ask(script, NOTE, { MILLWRIGHT_NOTE: note, MILLWRIGHT_AFTER: after })).code === 0;
}

/** Ends it and all that it started, if it still runs, and keeps it from being begun if it was not. */
export async function endDetached(script: DetachedScript): Promise<void> {
  const { code } = await ask(script, END, {});
  if (code === 0) return;
  const why = code === STILL_RUNS ? "it is still running" : `ending it ended with exit code ${code}`;
  throw new StepFailure("script_failed", `the script could not be ended: ${why}`);
}

/** What it wrote on one of its streams from that byte on, as it comes. */
export async function readOutput(
  script: DetachedScript,
  { stream, from }: { readonly stream: LogStream; readonly from: number },
  onBytes: (bytes: Uint8Array) => void,
): Promise<void> {
  const env = { MILLWRIGHT_STREAM: stream, MILLWRIGHT_FROM: String(from) };
  await ask(script, READ, env, (text, written) => {
    if (written === "stdout") onBytes(text);
  });
}

function ask(
  { mark, exec, ssh, call, asRoot }: DetachedScript,
  script: string,
  env: Readonly<Record<string, string>>,
  onOutput?: (text: Uint8Array, stream: "stdout" | "stderr") => void,
): Promise<RemoteExit> {
  const asked = { script, env: { ...env, MILLWRIGHT_MARK: mark }, timeout: QUICK, ...(asRoot && { asRoot }) };
  return exec.run(ssh, onOutput === undefined ? asked : { ...asked, onOutput }, call);
}
