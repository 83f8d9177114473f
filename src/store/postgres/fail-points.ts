/**
 * Places where a test can have this process die as if by kill -9, to prove that what was half done is finished or undone.
 *
 * `MILLWRIGHT_FAILPOINT=committer:inside` dies at the first pass, `committer:inside@3` at the third; a thing's kind and state
 * narrow it down: `committer:inside:power_shelf:maintenance`. With `stop=` in front it is paused there (SIGSTOP) instead,
 * until somebody lets it go on.
 */
const wanted = parseFailPoint(process.env.MILLWRIGHT_FAILPOINT ?? "");
let passes = 0;

export interface FailPointSetting {
  readonly name: string;
  readonly pass: number;
  readonly action: "die" | "stop";
}

export function parseFailPoint(setting: string): FailPointSetting | undefined {
  if (setting === "") return undefined;
  const [, stop, where = ""] = /^(stop=)?(.*)$/s.exec(setting) ?? [];
  const [, name = where, pass = "1"] = /^(.+)@([1-9]\d*)$/.exec(where) ?? [];
  return { name, pass: Number(pass), action: stop === undefined ? "die" : "stop" };
}

export interface FailPointSubject {
  readonly kind: string;
  readonly state?: string;
}

let watcher: ((name: string, subjects: readonly FailPointSubject[]) => void) | undefined;

/** Has every pass told, for a test's own process that knows by more than names where it is to die. */
export function watchFailPoints(onPass: NonNullable<typeof watcher>): void {
  watcher = onPass;
}

/** Costs two comparisons when no fail point is set. */
export function failPoint(name: string, subjects: readonly FailPointSubject[] = []): void {
  watcher?.(name, subjects);
  if (wanted === undefined || !wanted.name.startsWith(name)) return;
  const names = [name, ...subjects.flatMap(({ kind, state }) => [`${name}:${kind}`, `${name}:${kind}:${state}`])];
  if (!names.includes(wanted.name)) return;
  passes += 1;
  if (passes !== wanted.pass) return;
  if (wanted.action === "die") die();
  else stop();
}

/** The signal comes soon, but not at once: nothing may run in between, not even another thread's answer to us. */
export function die(): never {
  process.kill(process.pid, "SIGKILL");
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
}

/** Here too nothing more may run until it takes effect; the wait is over long before anybody lets us go on. */
function stop(): void {
  process.kill(process.pid, "SIGSTOP");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
}
