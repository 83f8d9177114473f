import type { Machine } from "../devices/machine.ts";

/** What a script put into the background. It outlives the connection, and ends with the boot that it was started under. */
export interface Process {
  readonly pid: number;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Resolves however it ends. */
  readonly ended: Promise<void>;
}

const FIRST_PID = 4_300;

/** The processes in the background of one machine. They are not kept: they end with the simulator. */
class Processes {
  readonly #machine: Machine;
  readonly #byPid = new Map<number, Process & { readonly bootId: string | undefined; stop(): void }>();
  #nextPid = FIRST_PID;

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  start(env: Readonly<Record<string, string>>, run: (process: Process) => Promise<unknown>): Process {
    const pid = this.#nextPid;
    this.#nextPid += 1;
    const abort = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const process = { pid, env, signal: abort.signal, ended };
    const bootId = this.#machine.upBootId;
    this.#machine.countBackgroundProcess();
    this.#byPid.set(pid, { ...process, bootId, stop: () => abort.abort(new Error(`process ${pid} was ended`)) });
    // In a turn of its own: whoever started it does not wait for its first command.
    setImmediate(() => {
      run(process)
        .catch(() => {}) // Ended from outside; what it wrote until then is there.
        .finally(() => {
          this.#byPid.delete(pid);
          resolve();
        });
    });
    return process;
  }

  /** Undefined for one that has ended, also because the machine went down under it. */
  find(pid: number): Process | undefined {
    const process = this.#byPid.get(pid);
    if (process === undefined || process.bootId === this.#machine.upBootId) return process;
    process.stop();
    return undefined;
  }

  /** Of those that are there now. */
  get pids(): number[] {
    return [...this.#byPid.keys()].filter((pid) => this.find(pid) !== undefined);
  }

  end(pid: number): boolean {
    const isThere = this.find(pid) !== undefined;
    this.#byPid.get(pid)?.stop();
    return isThere;
  }
}

const ofMachine = new WeakMap<Machine, Processes>();

export function processesOf(machine: Machine): Processes {
  const known = ofMachine.get(machine);
  if (known !== undefined) return known;
  const made = new Processes(machine);
  ofMachine.set(machine, made);
  return made;
}
