import type { Machine } from "../devices/machine.ts";
import { kernelStarted, onToDisk, screenShown } from "../devices/network-life.ts";
import type { FaultBook } from "../faults/fault-book.ts";
import type { SimulatedClock } from "../simulated-clock.ts";
import type { ImageSpec } from "../site/images.ts";
import { type Firmware, followScript } from "./ipxe-script.ts";
import { MachineClient } from "./machine-client.ts";
import { runNetworkAgent } from "./network-agent.ts";

export interface NetworkBootsOptions {
  readonly machines: ReadonlyMap<string, Machine>;
  readonly clock: SimulatedClock;
  readonly faults: FaultBook;
  readonly images: readonly ImageSpec[];
  readonly pxeImage: ImageSpec;
  /** As machines reach it; null: nobody answers. */
  bootServer(): string | null;
  readonly log: (line: string) => void;
}

/** Devices have no timers of their own: what is due is looked for this often, in real time, while something can be. */
const LOOKS_EVERY_MS = 100;

/**
 * Firmware and kernels of the machines that boot from the network. They ask the boot server for real, which is why this, and what
 * installers do (`installer-calls.ts`), act by themselves.
 */
export class NetworkBoots {
  readonly #options: NetworkBootsOptions;
  /** Machines that boot, or soon may. */
  readonly #watched = new Set<string>();
  readonly #running = new Map<string, { readonly boot: number; readonly stop: AbortController }>();
  readonly #sessions = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: NetworkBootsOptions) {
    this.#options = options;
    for (const id of options.machines.keys()) this.watch(id);
  }

  /** The machine may be about to boot. */
  watch(id: string): void {
    if (this.#closed || this.#options.bootServer() === null) return;
    this.#watched.add(id);
    this.#timer ??= setInterval(() => this.#look(), LOOKS_EVERY_MS);
  }

  /** A boot server appeared, or went: machines without a disk try again. */
  bootServerChanged(): void {
    for (const [id, machine] of this.#options.machines) {
      machine.tryBootAgain();
      this.watch(id);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    for (const { stop } of this.#running.values()) stop.abort();
    await Promise.allSettled(this.#sessions);
  }

  #look(): void {
    for (const id of this.#watched) {
      const machine = this.#options.machines.get(id);
      const life = machine?.state.life;
      const running = this.#running.get(id);
      if (machine === undefined || life?.is !== "network_boot") {
        running?.stop.abort();
        if (life?.is !== "post") this.#watched.delete(id);
      } else if (running?.boot !== life.boot && life.kernel?.isCut !== true) {
        running?.stop.abort();
        this.#begin(machine, life.boot);
      }
    }
    if (this.#watched.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #begin(machine: Machine, boot: number): void {
    const stop = new AbortController();
    const running = { boot, stop };
    this.#running.set(machine.spec.id, running);
    const session = this.#run(machine, boot, stop.signal)
      .catch((error: unknown) => {
        if (!stop.signal.aborted) this.#options.log(`${machine.spec.id}: booting from the network: ${String(error)}`);
      })
      .finally(() => {
        this.#sessions.delete(session);
        if (this.#running.get(machine.spec.id) === running) this.#running.delete(machine.spec.id);
      });
    this.#sessions.add(session);
  }

  async #run(machine: Machine, boot: number, signal: AbortSignal): Promise<void> {
    const client = new MachineClient(machine.spec.sshAddress, signal);
    const sleep = (milliseconds: number) => this.#sleep(milliseconds, signal);
    const words = wordsOf(machine) ?? (await this.#bootKernel(machine, boot, { client, sleep }));
    if (words === undefined) return;
    const { images, pxeImage, faults } = this.#options;
    const device = machine.spec.id;
    const trouble = {
      fails: faults.strike("install_fails", { device }) !== undefined,
      losesLease: faults.strike("loses_lease", { device }) !== undefined,
      diesAt: faults.strike("install_dies", { device })?.fault.percent,
    };
    await runNetworkAgent({ machine, boot, words, client, images, pxeImage, sleep, trouble });
  }

  /** DHCP named the boot server; its scripts say what comes next. */
  async #bootKernel(
    machine: Machine,
    boot: number,
    { client, sleep }: { client: MachineClient; sleep: (milliseconds: number) => Promise<void> },
  ): Promise<Readonly<Record<string, string>> | undefined> {
    const screen: string[] = [];
    const firmware: Firmware = {
      fetchScript: (url) => client.text(url),
      load: async (url) => void (await client.digest(url)),
      sleep: (seconds) => sleep(seconds * 1_000),
      echo: (text) => {
        screen.push(text);
        machine.changeNetworkBoot(boot, screenShown(screen.slice(-5).join("\n")));
      },
      setting: (name) => settingsOf(machine)[name] ?? "",
    };
    const end = await followScript(`#!ipxe\nchain ${this.#options.bootServer()}/api/v1/boot.ipxe`, firmware);
    const words = end.type === "kernel" ? end.words : undefined;
    machine.changeNetworkBoot(boot, words === undefined ? onToDisk : kernelStarted(words));
    return words;
  }

  /** Simulated time, whose speed may change meanwhile. */
  async #sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const until = clock.now() + milliseconds;
    while (clock.now() < until) {
      const left = (until - clock.now()) / clock.speed;
      await new Promise<void>((resolve, reject) => {
        const done = () => {
          signal.removeEventListener("abort", stopped);
          resolve();
        };
        const timer = setTimeout(done, Math.max(1, Math.min(left, 1_000)));
        const stopped = () => {
          clearTimeout(timer);
          reject(new Error("the boot has ended"));
        };
        if (signal.aborted) stopped();
        else signal.addEventListener("abort", stopped, { once: true });
      });
    }
  }
}

/** Of a kernel that ran when the simulator stopped. */
function wordsOf({ state: { life } }: Machine): Readonly<Record<string, string>> | undefined {
  return life.is === "network_boot" ? life.kernel?.words : undefined;
}

/** iPXE's names for what it knows. */
const settingsOf = ({ spec, state }: Machine): Readonly<Record<string, string>> => ({
  "netX/mac": spec.macs[0] ?? "",
  manufacturer: spec.vendor,
  product: spec.model,
  serial: spec.serial,
  uuid: spec.systemUuid,
  buildarch: "x86_64",
  platform: state.boot.mode === "Legacy" ? "pcbios" : "efi",
});
