import { createHash, randomUUID } from "node:crypto";
import type { BootOverride } from "../../capabilities/boot-device.ts";
import type { InstallOrder } from "../../capabilities/imaging.ts";
import type { PowerState } from "../../capabilities/power-control.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { FakeOperation } from "./fake-speed.ts";

export interface FakeScript {
  readonly startedAt: number;
  readonly endsAt: number;
  /** Of the boot that it was started under: another one has cut it off. */
  readonly bootId: string;
  readonly code: number;
  readonly output: string;
  /** Waits to be told that it may end, as a network change does. */
  readonly awaits: string | null;
  readonly notes: Set<string>;
}

const NO_OVERRIDE: BootOverride = { source: "none", lasts: "once" };

/**
 * One machine, as far as it can be told from one: power, boots, boot source, medium, what is installed and what it joined. Nothing
 * runs by itself: what would have happened meanwhile is caught up with whenever somebody looks.
 */
export class FakeMachine {
  readonly id: string;
  readonly #clock: Clock;
  readonly #takes: Readonly<Record<FakeOperation, Duration>>;
  #power: "on" | "off" = "on";
  #turning: "on" | "off" | null = null;
  #next: { readonly at: number; readonly happens: (at: number) => void } | null = null;
  #bootId: string = randomUUID();
  #isUp = true;
  readonly counts = { requests: 0, commands: 0, restarts: 0 };
  lastReset: string;
  override: BootOverride = NO_OVERRIDE;
  medium: InstallOrder | null = null;
  stamp: string | null = null;
  locator: "lit" | "dark" = "dark";
  joined: { readonly cluster: string; readonly at: number; readonly uid: string } | null = null;
  unschedulable = false;
  scripts = new Map<string, FakeScript>();

  constructor(id: string, clock: Clock, takes: Readonly<Record<FakeOperation, Duration>>) {
    this.id = id;
    this.#clock = clock;
    this.#takes = takes;
    this.lastReset = clock.now().toISOString();
  }

  get serial(): string {
    return `FAKE-${this.id}`;
  }

  get systemUuid(): string {
    const hex = createHash("sha256").update(this.id).digest("hex");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  }

  /** The same for as long as the machine has its name: what was pinned before the server was restarted still holds. */
  get hostKey(): string {
    return `ssh-ed25519 ${createHash("sha256").update(this.id).digest("base64")}`;
  }

  get mac(): string {
    return `02:${(createHash("sha256").update(this.id).digest("hex").slice(0, 10).match(/../g) ?? []).join(":")}`;
  }

  get now(): number {
    return this.#clock.monotonic();
  }

  /** Undefined while no system answers. */
  get bootId(): string | undefined {
    this.catchUp();
    return this.#isUp ? this.#bootId : undefined;
  }

  get power(): PowerState {
    this.catchUp();
    return this.#turning === null ? this.#power : `powering_${this.#turning}`;
  }

  turn(to: "on" | "off"): void {
    this.counts.commands += 1;
    this.#turning = to;
    if (to === "off") this.#isUp = false;
    this.#after(to === "off" ? "rma" : "reboot", (at) => this.switchAtRack(to, at));
  }

  /** At once, by somebody who stands there. */
  switchAtRack(to: "on" | "off", at = this.now): void {
    this.#next = null;
    this.#turning = null;
    const was = this.#power;
    this.#power = to;
    if (to === "off") this.#isUp = false;
    else if (was === "off" || !this.#isUp) this.#boot(at);
  }

  /** Takes the medium out, and the boot source back where that was the medium. */
  eject(): void {
    this.medium = null;
    if (this.override.source === "cd") this.override = NO_OVERRIDE;
  }

  restart(): void {
    this.catchUp();
    if (this.#power === "off") {
      this.turn("on");
      return;
    }
    this.counts.commands += 1;
    this.counts.restarts += 1;
    this.#turning = null;
    this.#isUp = false;
    this.#after("reboot", (at) => this.#boot(at));
  }

  #boot(at: number): void {
    const { source, lasts } = this.override;
    if (lasts === "once") this.override = NO_OVERRIDE;
    this.#noteReset();
    const { medium } = this;
    if (source !== "cd" || medium === null) {
      this.#comeUp();
      return;
    }
    this.#isUp = false;
    this.#next = { at: at + this.#takes.repave, happens: () => this.#install(medium) };
    this.catchUp();
  }

  #install(medium: InstallOrder): void {
    this.stamp = medium.stamp?.text ?? `token=${medium.token}\n`;
    this.joined = null;
    this.scripts.clear();
    this.#comeUp();
  }

  #comeUp(): void {
    this.#bootId = randomUUID();
    this.#isUp = true;
  }

  /** Two within a millisecond are two. */
  #noteReset(): void {
    this.lastReset = `${this.#clock.now().toISOString()} ${randomUUID().slice(0, 8)}`;
  }

  #after(operation: FakeOperation, happens: (at: number) => void): void {
    this.#next = { at: this.now + this.#takes[operation], happens };
    this.catchUp();
  }

  /** Lets happen what is due: called before anybody looks. */
  catchUp(): void {
    const due = this.#next;
    if (due === null || due.at > this.now) return;
    this.#next = null;
    due.happens(due.at);
    this.catchUp();
  }
}
