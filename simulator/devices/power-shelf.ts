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
import { type Meter, readMeter } from "./power-shelf-meter.ts";
import type { Trait } from "./profile.ts";

export const SHELF_LAYOUTS = ["liteon", "standard"] as const;
/** Which vendor's arrangement of Redfish resources the shelf shows. */
export type ShelfLayout = (typeof SHELF_LAYOUTS)[number];

export const CHASSIS_ID: Readonly<Record<ShelfLayout, string>> = { liteon: "powershelf", standard: "chassis" };

export type PowerCommand = Power | "cycle";

/** What a shelf is; follows from the site and the seed and never changes. */
export interface PowerShelfSpec extends ManagedDeviceSpec {
  readonly kind: "power_shelf";
  readonly layout: ShelfLayout;
  readonly supplies: readonly { readonly name: string; readonly serial: string }[];
  readonly capacityWatts: number;
  readonly initialPower: Power;
}

const SHELF_LOG_CODES = [
  "power_on_accepted",
  "power_off_accepted",
  "power_cycle_accepted",
  "powered_on",
  "powered_off",
  "manager_restarted",
  "flash_begun",
  "flash_completed",
  "flash_failed",
] as const;
export type ShelfLogCode = (typeof SHELF_LOG_CODES)[number];
export type ShelfLogEntry = LogEntry<ShelfLogCode>;

const LOG_TEXTS: Readonly<Record<ShelfLogCode, string>> = {
  power_on_accepted: "Power on was requested.",
  power_off_accepted: "Power off was requested.",
  power_cycle_accepted: "A power cycle was requested.",
  powered_on: "The output was switched on.",
  powered_off: "The output was switched off.",
  manager_restarted: "The management controller was restarted.",
  flash_begun: "Firmware is being written.",
  flash_completed: "Firmware was written.",
  flash_failed: "Firmware could not be written.",
};

const SEVERITIES: Readonly<Partial<Record<ShelfLogCode, DeviceEvent["severity"]>>> = {
  powered_off: "Warning",
  flash_failed: "Critical",
};

/** Counts of what was really accepted and done, by which tests prove that nothing happened twice. */
export interface ShelfEffects {
  readonly power_on_commands: number;
  readonly power_off_commands: number;
  readonly power_cycle_commands: number;
  /** How often the output really went on or off, whoever did it. */
  readonly power_changes: number;
  readonly manager_restarts: number;
}

interface ShelfState {
  readonly power: Power;
  readonly pending: readonly PendingChange[];
  readonly lie: Lie | null;
  readonly managerBackAt: number;
  readonly log: readonly ShelfLogEntry[];
  readonly effects: ShelfEffects;
  /** Absent: as delivered. */
  readonly traits?: readonly Trait[];
}

export interface ShelfReading {
  /** The truth. */
  readonly power: PowerPhase;
  /** What the management controller claims; differs from the truth while it lies. */
  readonly reported: PowerPhase;
  readonly meter: Meter;
}

/**
 * A power shelf: what is really on its output, and what its management controller says about it.
 *
 * There are no timers. A pending change is kept with its due time, and the present is worked out when somebody looks, so
 * that thousands of idle shelves cost nothing and a change that was pending when the process died is simply done later.
 */
export class PowerShelf implements ManagedDevice {
  readonly spec: PowerShelfSpec;
  requests = 0;
  readonly eventStreams = { open: 0, opened: 0 };
  readonly firmware: Firmware;
  readonly #surroundings: DeviceSurroundings;
  #state: ShelfState;

  constructor(spec: PowerShelfSpec, surroundings: DeviceSurroundings) {
    this.spec = spec;
    this.#surroundings = surroundings;
    this.#state = (surroundings.load(spec.id) as ShelfState | undefined) ?? freshState(spec.initialPower);
    this.firmware = new Firmware({
      spec,
      clock: surroundings.clock,
      load: () => surroundings.firmware.load(spec.id),
      save: (firmware) => surroundings.firmware.save(spec.id, firmware),
      has: (trait) => this.traits.includes(trait),
      isFaultPresent: (fault) => surroundings.isFaultPresent(fault),
      conduct: () => surroundings.firmware.conduct(spec.id),
      last: (what) => lastInLog(this.log, what === "manager_restart" ? "manager_restarted" : "powered_on"),
      happened: (what, at) => this.#note(what, at),
      restartsManager: (at) => this.restartManager(at),
    });
  }

  read(): ShelfReading {
    const state = this.#settle();
    const { clock, seeded } = this.#surroundings;
    const power = phaseOf(state.power, state.pending);
    const lie = this.#presentLie();
    const shown = this.traits.includes("late_power") ? state.power : power;
    const reported = lie === undefined ? shown : claimedPhase(lie, clock.now());
    const meter = readMeter({ spec: this.spec, on: state.power === "on", seeded, realNow: clock.realNow() });
    return { power, reported, meter };
  }

  get traits(): readonly Trait[] {
    return this.#state.traits ?? this.spec.traits;
  }

  setTraits(traits: readonly Trait[]): void {
    this.#save({ ...this.#settle(), traits });
  }

  get effects(): ShelfEffects {
    return this.#settle().effects;
  }

  /** Oldest first. */
  get log(): readonly ShelfLogEntry[] {
    return this.#settle().log;
  }

  get events(): readonly DeviceEvent[] {
    return this.log.map(([sequence, at, code]) => ({
      sequence,
      at,
      severity: SEVERITIES[code] ?? "OK",
      messageId: `PowerShelf.1.0.${SHELF_LOG_CODES.indexOf(code) + 1}`,
      message: LOG_TEXTS[code],
    }));
  }

  /** Its parts are always well. */
  get ailing(): string {
    return "";
  }

  get reachable(): boolean {
    return !this.firmware.isSilent && this.#surroundings.clock.now() >= this.#state.managerBackAt;
  }

  get managerRestarts(): number {
    return this.#state.effects.manager_restarts;
  }

  /** A command through the management controller. It has been written through when this returns. */
  command(command: PowerCommand, conduct: Conduct): void {
    const state = this.#settle();
    const now = this.#surroundings.clock.now();
    const accepted: ShelfState = {
      ...state,
      effects: { ...state.effects, [`power_${command}_commands`]: state.effects[`power_${command}_commands`] + 1 },
      log: this.#logged(state.log, `power_${command}_accepted`, now),
    };
    switch (conduct.is) {
      case "honest":
        this.#save({ ...accepted, lie: null, pending: pendingAfter(state, command, now, this.#delay(accepted)) });
        break;
      case "idle":
        this.#save(accepted);
        break;
      case "lying": {
        const to = command === "cycle" ? "on" : command;
        this.#save({ ...accepted, lie: { faultId: conduct.faultId, to, dueAt: now + POWER_CHANGE_MS } });
      }
    }
  }

  /** Somebody at the rack uses the switch: at once, and past the management controller. */
  switchAtRack(power: Power, conduct: Conduct): void {
    const state = this.#settle();
    const now = this.#surroundings.clock.now();
    const claimed = this.read().reported;
    const lie: Lie | null =
      conduct.is === "lying" ? { faultId: conduct.faultId, to: settledPower(claimed), dueAt: now } : null;
    const switched = power === state.power ? state : this.#flipped(state, power, now);
    this.#save({ ...switched, pending: [], lie });
  }

  restartManager(at = this.#surroundings.clock.now()): void {
    const state = this.#settle();
    this.#save({
      ...state,
      managerBackAt: at + MANAGER_RESTART_MS,
      log: this.#logged(state.log, "manager_restarted", at),
      effects: { ...state.effects, manager_restarts: state.effects.manager_restarts + 1 },
    });
  }

  #note(code: ShelfLogCode, at: number): void {
    const state = this.#settle();
    this.#save({ ...state, log: this.#logged(state.log, code, at) });
  }

  /** Carries out what has fallen due since somebody last looked. */
  #settle(): ShelfState {
    const now = this.#surroundings.clock.now();
    let state = this.#state;
    while (state.pending[0] !== undefined && state.pending[0].dueAt <= now) {
      const [{ to, dueAt }, ...later] = state.pending as [PendingChange, ...PendingChange[]];
      state = { ...(to === state.power ? state : this.#flipped(state, to, dueAt)), pending: later };
    }
    if (state !== this.#state) this.#save(state);
    return state;
  }

  #flipped(state: ShelfState, to: Power, at: number): ShelfState {
    return {
      ...state,
      power: to,
      effects: { ...state.effects, power_changes: state.effects.power_changes + 1 },
      log: this.#logged(state.log, `powered_${to}`, at),
    };
  }

  #delay({ effects }: ShelfState): number {
    if (!this.traits.includes("late_power")) return POWER_CHANGE_MS;
    const commands = effects.power_on_commands + effects.power_off_commands + effects.power_cycle_commands;
    return lateBy(this.#surroundings.seeded.fraction(`${this.spec.id}/late/${commands}`));
  }

  #presentLie(): Lie | undefined {
    const { lie } = this.#state;
    return lie !== null && this.#surroundings.isFaultPresent(lie.faultId) ? lie : undefined;
  }

  #logged(log: readonly ShelfLogEntry[], code: ShelfLogCode, at: number): readonly ShelfLogEntry[] {
    return appendToLog(log, code, this.#surroundings.clock.realTimeOf(at));
  }

  #save(state: ShelfState): void {
    this.#surroundings.save(this.spec.id, state);
    this.#state = state;
  }
}

/** A command for what is under way, or there already, changes nothing; any other one replaces what is under way. */
function pendingAfter(state: ShelfState, command: PowerCommand, now: number, delay: number): readonly PendingChange[] {
  const { power, pending } = state;
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

function freshState(power: Power): ShelfState {
  return {
    power,
    pending: [],
    lie: null,
    managerBackAt: 0,
    log: [],
    effects: {
      power_on_commands: 0,
      power_off_commands: 0,
      power_cycle_commands: 0,
      power_changes: 0,
      manager_restarts: 0,
    },
  };
}
