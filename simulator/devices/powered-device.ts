import { Firmware } from "./firmware/firmware.ts";
import {
  appendToLog,
  type DeviceEvent,
  type DeviceSurroundings,
  type LogEntry,
  lastInLog,
  type ManagedDevice,
  type ManagedDeviceSpec,
} from "./managed-device.ts";
import {
  type Conduct,
  claimedPhase,
  type Lie,
  lateBy,
  MANAGER_RESTART_MS,
  type PendingChange,
  POWER_CHANGE_MS,
  type Power,
  type PowerPhase,
  phaseOf,
  settledPower,
} from "./power.ts";
import type { Trait } from "./profile.ts";

export interface PoweredDeviceSpec extends ManagedDeviceSpec {
  readonly initialPower: Power;
}

export type PowerCommand = Power | "cycle";

/** In the order of their message numbers; new ones go to the end. */
const LOG_TEXTS = {
  power_on_accepted: ["OK", "Power on was requested."],
  power_off_accepted: ["OK", "Power off was requested."],
  power_cycle_accepted: ["OK", "A power cycle was requested."],
  powered_on: ["OK", "The output was switched on."],
  powered_off: ["Warning", "The output was switched off."],
  manager_restarted: ["OK", "The management controller was restarted."],
  flash_begun: ["OK", "Firmware is being written."],
  flash_completed: ["OK", "Firmware was written."],
  flash_failed: ["Critical", "Firmware could not be written."],
  restarted: ["Warning", "The system was restarted."],
} as const satisfies Readonly<Record<string, readonly [DeviceEvent["severity"], string]>>;
export type PowerLogCode = keyof typeof LOG_TEXTS;
const LOG_CODES = Object.keys(LOG_TEXTS);

/** Counts of what was really accepted and done, by which tests prove that nothing happened twice. */
export interface PowerEffects {
  readonly power_on_commands: number;
  readonly power_off_commands: number;
  readonly power_cycle_commands: number;
  /** How often the output really went on or off, whoever did it. */
  readonly power_changes: number;
  readonly manager_restarts: number;
}

export const NO_EFFECTS: PowerEffects = {
  power_on_commands: 0,
  power_off_commands: 0,
  power_cycle_commands: 0,
  power_changes: 0,
  manager_restarts: 0,
};

export interface PoweredState {
  readonly power: Power;
  readonly pending: readonly PendingChange[];
  readonly lie: Lie | null;
  readonly managerBackAt: number;
  readonly log: readonly LogEntry<PowerLogCode>[];
  readonly effects: PowerEffects;
  /** Absent: as delivered. */
  readonly traits?: readonly Trait[];
}

export const poweredState = (power: Power) =>
  ({ power, pending: [], lie: null, managerBackAt: 0, log: [] }) as const satisfies Partial<PoweredState>;

/**
 * A device whose power its management controller switches: what is really on, and what the controller says about it.
 *
 * There are no timers. A pending change is kept with its due time, and the present is worked out when somebody looks, so
 * that thousands of idle devices cost nothing and a change that was pending when the process died is simply done later.
 */
export abstract class PoweredDevice<Spec extends PoweredDeviceSpec, State extends PoweredState>
  implements ManagedDevice
{
  readonly spec: Spec;
  requests = 0;
  readonly eventStreams = { open: 0, opened: 0 };
  readonly firmware: Firmware;
  protected readonly surroundings: DeviceSurroundings;
  #state: State;

  constructor(spec: Spec, surroundings: DeviceSurroundings, fresh: State) {
    this.spec = spec;
    this.surroundings = surroundings;
    this.#state = (surroundings.load(spec.id) as State | undefined) ?? fresh;
    this.firmware = new Firmware({
      spec,
      clock: surroundings.clock,
      load: () => surroundings.firmware.load(spec.id),
      save: (firmware) => surroundings.firmware.save(spec.id, firmware),
      has: (trait) => this.traits.includes(trait),
      isFaultPresent: (fault) => surroundings.isFaultPresent(fault),
      conduct: () => surroundings.firmware.conduct(spec.id),
      last: (what) => this.#last(what),
      happened: (what, at) => this.#note(what, at),
      restartsManager: (at) => this.restartManager(at),
    });
  }

  /** What it calls itself in its log. */
  protected abstract readonly registry: string;

  /** What follows from having power again, or from a restart. */
  protected started(state: State, _at: number): State {
    return state;
  }

  /** The truth, and what the management controller claims; they differ while it lies. */
  readPower(): { readonly power: PowerPhase; readonly reported: PowerPhase } {
    const state = this.settle();
    const power = phaseOf(state.power, state.pending);
    const lie = this.#presentLie();
    const shown = this.traits.includes("late_power") ? state.power : power;
    return { power, reported: lie === undefined ? shown : claimedPhase(lie, this.surroundings.clock.now()) };
  }

  get isOn(): boolean {
    return this.settle().power === "on";
  }

  get traits(): readonly Trait[] {
    return this.#state.traits ?? this.spec.traits;
  }

  setTraits(traits: readonly Trait[]): void {
    this.save({ ...this.settle(), traits });
  }

  get effects(): State["effects"] {
    return this.settle().effects;
  }

  /** Oldest first. */
  get log(): readonly LogEntry<PowerLogCode>[] {
    return this.settle().log;
  }

  get events(): readonly DeviceEvent[] {
    return this.log.map(([sequence, at, code]) => {
      const [severity, message] = LOG_TEXTS[code];
      return { sequence, at, severity, messageId: `${this.registry}.1.0.${LOG_CODES.indexOf(code) + 1}`, message };
    });
  }

  /** Its parts are always well. */
  get ailing(): string {
    return "";
  }

  get reachable(): boolean {
    return !this.firmware.isSilent && this.surroundings.clock.now() >= this.#state.managerBackAt;
  }

  get managerRestarts(): number {
    return this.#state.effects.manager_restarts;
  }

  get managerRestartedAt(): number {
    return lastInLog(this.#state.log, "manager_restarted");
  }

  /** A command through the management controller. It has been written through when this returns. */
  command(command: PowerCommand, conduct: Conduct): void {
    const state = this.settle();
    const now = this.surroundings.clock.now();
    const accepted: State = {
      ...state,
      effects: { ...state.effects, [`power_${command}_commands`]: state.effects[`power_${command}_commands`] + 1 },
      log: this.logged(state.log, `power_${command}_accepted`, now),
    };
    switch (conduct.is) {
      case "honest":
        this.save({ ...accepted, lie: null, pending: pendingAfter(state, command, now, this.#delay(accepted)) });
        break;
      case "idle":
        this.save(accepted);
        break;
      case "lying": {
        const to = command === "cycle" ? "on" : command;
        this.save({ ...accepted, lie: { faultId: conduct.faultId, to, dueAt: now + POWER_CHANGE_MS } });
      }
    }
  }

  /** Somebody at the rack uses the switch: at once, and past the management controller. */
  switchAtRack(power: Power, conduct: Conduct): void {
    const state = this.settle();
    const now = this.surroundings.clock.now();
    const claimed = this.readPower().reported;
    const lie: Lie | null =
      conduct.is === "lying" ? { faultId: conduct.faultId, to: settledPower(claimed), dueAt: now } : null;
    const switched = power === state.power ? state : this.#flipped(state, power, now);
    this.save({ ...switched, pending: [], lie });
  }

  activate(): void {
    if (this.isOn) this.command("cycle", { is: "honest" });
  }

  restartManager(at = this.surroundings.clock.now()): void {
    const state = this.settle();
    this.save({
      ...state,
      managerBackAt: at + MANAGER_RESTART_MS,
      log: this.logged(state.log, "manager_restarted", at),
      effects: { ...state.effects, manager_restarts: state.effects.manager_restarts + 1 },
    });
  }

  /** Carries out what has fallen due since somebody last looked. */
  protected settle(): State {
    const now = this.surroundings.clock.now();
    let state = this.#state;
    while (state.pending[0] !== undefined && state.pending[0].dueAt <= now) {
      const [{ to, dueAt }, ...later] = state.pending as [PendingChange, ...PendingChange[]];
      state = { ...(to === state.power ? state : this.#flipped(state, to, dueAt)), pending: later };
    }
    if (state !== this.#state) this.save(state);
    return state;
  }

  protected logged(log: State["log"], code: PowerLogCode, at: number): State["log"] {
    return appendToLog(log, code, this.surroundings.clock.realTimeOf(at));
  }

  protected save(state: State): void {
    this.surroundings.save(this.spec.id, state);
    this.#state = state;
  }

  #last(what: "manager_restart" | "reset" | "power_cycle"): number {
    if (what === "manager_restart") return this.managerRestartedAt;
    const poweredOn = lastInLog(this.log, "powered_on");
    return what === "reset" ? Math.max(poweredOn, lastInLog(this.log, "restarted")) : poweredOn;
  }

  #note(code: PowerLogCode, at: number): void {
    const state = this.settle();
    this.save({ ...state, log: this.logged(state.log, code, at) });
  }

  #flipped(state: State, to: Power, at: number): State {
    const flipped: State = {
      ...state,
      power: to,
      effects: { ...state.effects, power_changes: state.effects.power_changes + 1 },
      log: this.logged(state.log, `powered_${to}`, at),
    };
    return to === "on" ? this.started(flipped, at) : flipped;
  }

  #delay({ effects }: State): number {
    if (!this.traits.includes("late_power")) return POWER_CHANGE_MS;
    const commands = effects.power_on_commands + effects.power_off_commands + effects.power_cycle_commands;
    return lateBy(this.surroundings.seeded.fraction(`${this.spec.id}/late/${commands}`));
  }

  #presentLie(): Lie | undefined {
    const { lie } = this.#state;
    return lie !== null && this.surroundings.isFaultPresent(lie.faultId) ? lie : undefined;
  }
}

/** A command for what is under way, or there already, changes nothing; any other one replaces what is under way. */
function pendingAfter(
  { power, pending }: PoweredState,
  command: PowerCommand,
  now: number,
  delay: number,
): readonly PendingChange[] {
  if (command === "cycle") {
    const on: PendingChange = { to: "on", dueAt: now + delay };
    return power === "off"
      ? [on]
      : [
          { to: "off", dueAt: now + delay },
          { to: "on", dueAt: now + 2 * delay },
        ];
  }
  const next = pending[0];
  if (next?.to === command) return [next];
  if ((pending.at(-1)?.to ?? power) === command) return pending;
  return [{ to: command, dueAt: now + delay }];
}
