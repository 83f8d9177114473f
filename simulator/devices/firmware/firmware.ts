import type { SimulatedClock } from "../../simulated-clock.ts";
import { MANAGER_RESTART_MS } from "../power.ts";
import type { Trait } from "../profile.ts";
import {
  type ComponentSpec,
  type FirmwareState,
  type Flash,
  NO_FLASHES,
  type TakesEffect,
  type UpdateConduct,
  type UpdateOrder,
} from "./firmware-state.ts";

/** Simulated milliseconds. */
const FLASH_MS = 600_000;
/** A failing flash does not wait until its end to do so. */
const FAILING_FLASH_MS = FLASH_MS / 2;
const SHOWN_LATE_MS = 60_000;
const REFUSES_MS = 20_000;
const FLASHES_KEPT = 32;
const DAY_MS = 86_400_000;

/** What the firmware of a device needs of the device. */
export interface FirmwareSurroundings {
  readonly spec: { readonly id: string; readonly model: string; readonly components: readonly ComponentSpec[] };
  readonly clock: SimulatedClock;
  load(): unknown;
  save(state: FirmwareState): void;
  has(trait: Trait): boolean;
  isFaultPresent(faultId: string): boolean;
  /** Asked once for each update, when it is taken. */
  conduct(): UpdateConduct;
  /** When that last happened to the device, in real milliseconds; 0 for never. */
  last(what: Exclude<TakesEffect, "at_once">): number;
  /** A flash has begun or ended; in simulated time. */
  happened(what: "flash_begun" | "flash_completed" | "flash_failed", at: number): void;
  /** The controller restarts by itself at that simulated time. */
  restartsManager(at: number): void;
}

/**
 * The firmware of a device: what each component runs, what is being written, what waits for a reset.
 *
 * Like the devices it has no timers: the present is worked out when somebody looks.
 */
export class Firmware {
  readonly #around: FirmwareSurroundings;
  #state: FirmwareState;

  constructor(around: FirmwareSurroundings) {
    this.#around = around;
    const fresh = { ...NO_FLASHES, deliveredAt: around.clock.now() - DAY_MS };
    this.#state = { ...fresh, ...(around.load() as FirmwareState | undefined) };
  }

  get components(): readonly ComponentSpec[] {
    return this.#around.spec.components;
  }

  /** The version of a component, as its controller shows it; null where nobody knows. */
  version(id: string): string | null {
    const state = this.#settle();
    const installed = state.installed[id];
    if (installed === undefined) return this.#component(id)?.version ?? null;
    const { clock } = this.#around;
    const late = this.#around.has("version_shown_late") && clock.now() < installed.since + SHOWN_LATE_MS;
    return late ? installed.before : installed.version;
  }

  /** That of the management controller itself. */
  get ofManager(): string {
    return this.version(this.components[0]?.id ?? "") ?? "";
  }

  /** What was written and waits for something before it is used. */
  staged(id: string): { readonly version: string | null; readonly needs: TakesEffect } | undefined {
    return this.#settle().staged[id];
  }

  /** Newest last. */
  get flashes(): readonly Flash[] {
    return this.#settle().flashes;
  }

  /** Percent that the task shows. */
  percentOf(flash: Flash): number {
    if (flash.outcome !== "running") return 100;
    const { clock } = this.#around;
    const passed = (clock.now() - flash.begunAt) / (flash.dueAt - flash.begunAt);
    const most = flash.conduct.is === "stuck" && this.#isStuck(flash) ? flash.conduct.percent : 99;
    return Math.max(0, Math.min(most, Math.floor(100 * passed)));
  }

  /** In simulated time. */
  get deliveredAt(): number {
    return this.#state.deliveredAt;
  }

  /** A simulated moment as devices write it. */
  readonly clockAt = (at: number): string => new Date(this.#around.clock.realTimeOf(at)).toISOString();

  /** How many certificates it has made itself after the first. */
  get certificate(): number {
    return this.#settle().certificate;
  }

  /** Whether nothing answers at all. */
  get isSilent(): boolean {
    const { silentUntil, silentBy } = this.#settle();
    const isOver = silentBy !== null && !this.#around.isFaultPresent(silentBy);
    return !isOver && this.#around.clock.realNow() < silentUntil;
  }

  /** Whether every account is refused, as while it starts. */
  get refusesAccounts(): boolean {
    return this.#around.clock.now() < this.#settle().refusesUntil;
  }

  get pushTargets(): Pick<FirmwareState, "pushTargets" | "pushTargetsBusy"> {
    const { pushTargets, pushTargetsBusy } = this.#settle();
    return { pushTargets, pushTargetsBusy };
  }

  setPushTargets(targets: readonly string[], busy: boolean): void {
    this.#save({ ...this.#settle(), pushTargets: targets, pushTargetsBusy: busy });
  }

  /** Undefined while another update is under way. Otherwise the task, which may have failed already. */
  update(order: UpdateOrder): Flash | undefined {
    const state = this.#settle();
    if (state.flashes.some(({ outcome }) => outcome === "running")) return undefined;
    const flash = this.#begin(order, state.tasks + 1);
    const flashes = [...state.flashes, flash].slice(-FLASHES_KEPT);
    this.#save({ ...state, tasks: flash.task, flashes, pushTargets: [], pushTargetsBusy: false });
    this.#around.happened(flash.wrote ? "flash_begun" : "flash_failed", flash.begunAt);
    return flash;
  }

  #begin({ way, targets, image }: UpdateOrder, task: number): Flash {
    const { clock, spec } = this.#around;
    const { flash: conduct, acceptsWrongImage, silentAfterMs, silentBy } = this.#around.conduct();
    const now = clock.now();
    const component = "why" in image ? undefined : this.#component(image.component);
    const isWrong = !("why" in image) && image.model !== spec.model;
    const why = this.#refusal({ image, targets, isWrong: isWrong && !acceptsWrongImage });
    return {
      task,
      way,
      component: component?.id ?? null,
      from: component === undefined ? null : this.version(component.id),
      to: "why" in image ? null : image.version,
      bytes: "why" in image ? 0 : image.bytes,
      digest: "why" in image ? null : image.digest,
      targets,
      begunAt: now,
      dueAt: now + (conduct.is === "failing" ? FAILING_FLASH_MS : FLASH_MS),
      conduct,
      silentAfterMs,
      silentBy,
      isWrong,
      wrote: why === null,
      endedAt: why === null ? null : now,
      outcome: why === null ? "running" : "failed",
      why,
    };
  }

  #refusal(of: { image: UpdateOrder["image"]; targets: readonly string[]; isWrong: boolean }): string | null {
    const { image, targets, isWrong } = of;
    if ("why" in image) return image.why;
    if (this.#component(image.component) === undefined) return `there is no component ${image.component} here`;
    if (isWrong) return `the image is for ${image.model}, and this is ${this.#around.spec.model}`;
    const named = targets.map((path) => path.slice(path.lastIndexOf("/") + 1));
    if (named.length > 0 && !named.includes(image.component))
      return `the image is for ${image.component}, and ${named.join(", ")} was asked for`;
    return null;
  }

  #component(id: string): ComponentSpec | undefined {
    return this.components.find((component) => component.id === id);
  }

  #isStuck({ conduct }: Flash): boolean {
    return conduct.is === "stuck" && this.#around.isFaultPresent(conduct.faultId);
  }

  /** Carries out what has fallen due since somebody last looked. */
  #settle(): FirmwareState {
    const flash = this.#state.flashes.find(({ outcome }) => outcome === "running");
    if (flash !== undefined && flash.dueAt <= this.#around.clock.now() && !this.#isStuck(flash)) this.#end(flash);
    this.#activate();
    return this.#state;
  }

  #end(flash: Flash): void {
    const { clock } = this.#around;
    const at = flash.dueAt;
    const failed = flash.conduct.is === "failing";
    const why = failed ? "the component did not accept what was written" : null;
    const ended: Flash = { ...flash, outcome: failed ? "failed" : "completed", endedAt: at, why };
    const restarts = !failed && this.#restartsItself(flash);
    const makesCertificate = restarts && this.#around.has("new_certificate_after_flash");
    const refuses = restarts && this.#around.has("unauthorized_while_starting");
    const state: FirmwareState = {
      ...this.#state,
      flashes: this.#state.flashes.map((each) => (each.task === flash.task ? ended : each)),
      certificate: this.#state.certificate + (makesCertificate ? 1 : 0),
      silentUntil: flash.silentAfterMs === 0 ? 0 : clock.realTimeOf(at) + flash.silentAfterMs,
      silentBy: flash.silentBy ?? null,
      refusesUntil: refuses ? at + MANAGER_RESTART_MS + REFUSES_MS : this.#state.refusesUntil,
    };
    const hasWritten = !failed && flash.conduct.is !== "lying";
    this.#save(hasWritten ? this.#written(state, flash, at) : state);
    this.#around.happened(failed ? "flash_failed" : "flash_completed", at);
    if (restarts) this.#around.restartsManager(at);
  }

  #written(state: FirmwareState, flash: Flash, at: number): FirmwareState {
    const component = this.#component(flash.component ?? "");
    if (component === undefined) return state;
    const version = flash.isWrong ? null : flash.to;
    const needs = component.takesEffect;
    if (needs === "at_once" || this.#restartsItself(flash)) return this.#installed(state, component.id, version, at);
    const staged = { version, at: Math.round(this.#around.clock.realTimeOf(at)), needs };
    return { ...state, staged: { ...state.staged, [component.id]: staged } };
  }

  /** Whether the controller restarts by itself when that is written. */
  #restartsItself({ component }: Flash): boolean {
    const takesEffect = this.#component(component ?? "")?.takesEffect;
    return takesEffect === "manager_restart" && !this.#around.has("version_needs_reset");
  }

  #installed(state: FirmwareState, id: string, version: string | null, since: number): FirmwareState {
    const before = state.installed[id]?.version ?? this.#component(id)?.version ?? null;
    return { ...state, installed: { ...state.installed, [id]: { version, before, since } } };
  }

  #activate(): void {
    for (const [id, { version, at, needs }] of Object.entries(this.#state.staged)) {
      if (this.#around.last(needs) < at) continue;
      const { [id]: _done, ...staged } = this.#state.staged;
      this.#save({ ...this.#installed(this.#state, id, version, this.#around.clock.now()), staged });
    }
  }

  #save(state: FirmwareState): void {
    this.#around.save(state);
    this.#state = state;
  }
}
