import type { Machine } from "../devices/machine.ts";
import { MachineClient } from "./machine-client.ts";

/** Devices have no timers of their own: what is due is looked for this often, in real time, while something can be. */
const LOOKS_EVERY_MS = 100;
const TRIES = 5;
const BETWEEN_TRIES_MS = 500;

/** Installers that have read a seed call whom it tells them to call, as soon as they have begun. */
export class InstallerCalls {
  readonly #machines: ReadonlyMap<string, Machine>;
  readonly #log: (line: string) => void;
  /** Machines with such a seed in a drive, and the installation that has called. */
  readonly #watched = new Map<string, number>();
  readonly #calls = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  constructor({ machines, log }: { machines: ReadonlyMap<string, Machine>; log: (line: string) => void }) {
    this.#machines = machines;
    this.#log = log;
    for (const id of machines.keys()) this.watch(id);
  }

  watch(id: string): void {
    if (this.#stop.signal.aborted || this.#watched.has(id)) return;
    this.#watched.set(id, 0);
    this.#timer ??= setInterval(() => this.#look(), LOOKS_EVERY_MS);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#timer);
    await Promise.allSettled(this.#calls);
  }

  #look(): void {
    for (const [id, called] of this.#watched) {
      const machine = this.#machines.get(id);
      const state = machine?.state;
      const url = state?.secondMedium?.phoneHome ?? state?.media?.phoneHome ?? null;
      if (machine === undefined || state === undefined || url === null) {
        this.#watched.delete(id);
        continue;
      }
      const { life, effects } = state;
      if (life.is !== "installing" || life.source !== "virtual_media" || called === effects.installs_started) continue;
      this.#watched.set(id, effects.installs_started);
      const call = this.#call(machine, url).finally(() => this.#calls.delete(call));
      this.#calls.add(call);
    }
    if (this.#watched.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #call({ spec }: Machine, url: string): Promise<void> {
    const client = new MachineClient(spec.sshAddress, this.#stop.signal);
    for (let left = TRIES; left > 0 && !this.#stop.signal.aborted; left -= 1) {
      try {
        await client.post(url, { instance_id: spec.id });
        return;
      } catch (error) {
        this.#log(`${spec.id}: calling ${new URL(url).origin}: ${error instanceof Error ? error.name : "failed"}`);
        await new Promise((resolve) => setTimeout(resolve, BETWEEN_TRIES_MS));
      }
    }
  }
}
