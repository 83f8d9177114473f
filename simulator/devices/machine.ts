import { seededUuid } from "../site/fields.ts";
import type { ImageSpec } from "../site/images.ts";
import { Firmware } from "./firmware/firmware.ts";
import {
  advance,
  asUsual,
  crashed,
  flipped,
  JOIN_MS,
  type LifeSurroundings,
  logged,
  restarted,
  shutDown,
} from "./machine-life.ts";
import { describeEntry, type MachineLogCode } from "./machine-log.ts";
import { type MachineMeter, readMachineMeter } from "./machine-meter.ts";
import type { MachineSpec } from "./machine-spec.ts";
import {
  type Ailments,
  type BootOverride,
  counted,
  freshState,
  type MachineEffects,
  type MachineState,
  type NetbootOrder,
  type PartId,
  type ResetType,
  type SensorId,
  savedState,
  type VirtualDrive,
  type VirtualMedium,
} from "./machine-state.ts";
import { type DeviceEvent, type DeviceSurroundings, lastInLog, type ManagedDevice } from "./managed-device.ts";
import { networkFrom } from "./network.ts";
import type { NetworkChange } from "./network-life.ts";
import {
  type Conduct,
  claimedPhase,
  type Lie,
  lateBy,
  MANAGER_RESTART_MS,
  POWER_CHANGE_MS,
  type Power,
  type PowerPhase,
  phaseOf,
  settledPower,
} from "./power.ts";
import type { Trait } from "./profile.ts";

export interface MachineSurroundings extends DeviceSurroundings {
  readonly images: readonly ImageSpec[];
  readonly pxeImage: ImageSpec;
  installFails(id: string): boolean;
  hangsInPost(id: string): boolean;
  hasBootServer(): boolean;
  /** It boots, is about to, or has a seed that tells whom to call then. */
  boots?(id: string): void;
  /** It answers at other addresses than before. */
  moved?(id: string): void;
}

export interface MachineReading {
  /** The truth. */
  readonly power: PowerPhase;
  /** What the management controller claims; differs from the truth while it lies. */
  readonly reported: PowerPhase;
  readonly meter: MachineMeter;
}

const RESETS: Readonly<Record<ResetType, { code: MachineLogCode; effect: keyof MachineEffects; leadsTo: Power }>> = {
  On: { code: "on_accepted", effect: "power_on_commands", leadsTo: "on" },
  ForceOff: { code: "force_off_accepted", effect: "power_off_commands", leadsTo: "off" },
  GracefulShutdown: { code: "graceful_shutdown_accepted", effect: "graceful_shutdown_commands", leadsTo: "off" },
  GracefulRestart: { code: "graceful_restart_accepted", effect: "graceful_restart_commands", leadsTo: "on" },
  ForceRestart: { code: "force_restart_accepted", effect: "force_restart_commands", leadsTo: "on" },
  PowerCycle: { code: "power_cycle_accepted", effect: "power_cycle_commands", leadsTo: "on" },
};
const NEEDS_POWER: ReadonlySet<ResetType> = new Set(["GracefulRestart", "ForceRestart", "PowerCycle"]);

const LAST = { manager_restart: "manager_restarted", reset: "post_started", power_cycle: "powered_on" } as const;

/**
 * A machine: its power, what runs on it, and what its management controller says about it.
 *
 * As with the shelves there are no timers: whatever is under way is kept with its due time, and the present is worked out
 * when somebody looks.
 */
export class Machine implements ManagedDevice {
  readonly spec: MachineSpec;
  requests = 0;
  readonly eventStreams = { open: 0, opened: 0 };
  readonly #surroundings: MachineSurroundings;
  readonly #around: LifeSurroundings;
  readonly firmware: Firmware;
  #state: MachineState;

  constructor(spec: MachineSpec, surroundings: MachineSurroundings) {
    this.spec = spec;
    this.#surroundings = surroundings;
    const { clock, seeded, images, pxeImage } = surroundings;
    this.#around = {
      spec,
      seeded,
      images,
      pxeImage,
      realTimeOf: (at) => clock.realTimeOf(at),
      installFails: () => surroundings.installFails(spec.id),
      hangsInPost: () => surroundings.hangsInPost(spec.id),
      hasBootServer: () => surroundings.hasBootServer(),
      has: (trait) => this.has(trait),
    };
    const saved = surroundings.load(spec.id) as MachineState | undefined;
    this.#state = saved === undefined ? this.#delivered() : savedState(saved);
    if (this.#state.network !== null) surroundings.moved?.(spec.id);
    this.firmware = new Firmware({
      spec,
      clock,
      load: () => surroundings.firmware.load(spec.id),
      save: (firmware) => surroundings.firmware.save(spec.id, firmware),
      has: (trait) => this.has(trait),
      isFaultPresent: (fault) => surroundings.isFaultPresent(fault),
      conduct: () => surroundings.firmware.conduct(spec.id),
      last: (what) => lastInLog(this.state.log, LAST[what]),
      happened: (what, at) => this.#save(logged(this.state, this.#around, [what, at])),
      restartsManager: (at) => this.restartManager(at),
    });
  }

  /** The whole present state, as it truly is. */
  get state(): MachineState {
    const now = this.#surroundings.clock.now();
    const state = advance(this.#state, now, this.#around);
    if (state !== this.#state) this.#save(state);
    return state;
  }

  read(): MachineReading {
    const state = this.state;
    const { clock, seeded } = this.#surroundings;
    const power = phaseOf(state.power, state.pending);
    const lie = state.lie !== null && this.#surroundings.isFaultPresent(state.lie.faultId) ? state.lie : undefined;
    const shown = this.has("late_power") ? state.power : power;
    const reported = lie === undefined ? shown : claimedPhase(lie, clock.now());
    const meter = readMachineMeter({ id: this.spec.id, state, seeded, realNow: clock.realNow() });
    return { power, reported, meter };
  }

  get traits(): readonly Trait[] {
    return this.#state.traits ?? this.spec.traits;
  }

  has(trait: Trait): boolean {
    return this.traits.includes(trait);
  }

  setTraits(traits: readonly Trait[]): void {
    this.#save({ ...this.state, traits });
  }

  get effects(): MachineEffects {
    return this.state.effects;
  }

  get events(): readonly DeviceEvent[] {
    return this.state.log.map(describeEntry);
  }

  get ailing(): string {
    return JSON.stringify(this.state.ailments ?? {});
  }

  get reachable(): boolean {
    return !this.firmware.isSilent && this.#surroundings.clock.now() >= this.#state.managerBackAt;
  }

  get managerRestarts(): number {
    return this.#state.effects.manager_restarts;
  }

  get managerRestartedAt(): number {
    return lastInLog(this.#state.log, LAST.manager_restart);
  }

  /** The id of the boot that is up, or undefined while no operating system answers. */
  get upBootId(): string | undefined {
    const { life, bootId } = this.state;
    return life.is === "running" && bootId !== null ? bootId : undefined;
  }

  /** Where its system answers while it is up; the first one is what it calls its own. */
  get addresses(): readonly string[] {
    return this.state.network?.addresses ?? [this.spec.sshAddress];
  }

  /** What is wrong with the network settings among its files. */
  get networkProblem(): string | undefined {
    const read = networkFrom(this.state.files, this.spec.sshAddress);
    return "problem" in read ? read.problem : undefined;
  }

  /** Takes the network settings among its files into force; returns what is wrong with them, in which case nothing changes. */
  applyNetwork(): string | undefined {
    const state = this.state;
    const read = networkFrom(state.files, this.spec.sshAddress);
    if ("problem" in read) return read.problem;
    const network = asUsual(read, this.spec.sshAddress) ? null : read;
    this.#save({ ...state, network, effects: counted(state.effects, "network_changes") });
    return undefined;
  }

  /** Another version of the kubelet is on the disk; one that runs goes on with its own until it is started again. */
  installKubelet(version: string): void {
    const state = this.state;
    if (state.os === null || state.os.kubeletVersion === version) return;
    const effects = counted(state.effects, "package_upgrades");
    this.#save({ ...state, os: { ...state.os, kubeletVersion: version }, effects });
  }

  /** A command through the management controller; false when the present power state does not allow it. */
  reset(type: ResetType, conduct: Conduct): boolean {
    const state = this.state;
    const now = this.#surroundings.clock.now();
    if (NEEDS_POWER.has(type) && phaseOf(state.power, state.pending) === "off") return false;
    const { code, effect, leadsTo } = RESETS[type];
    const accepted = this.#logged({ ...state, effects: counted(state.effects, effect, "resets") }, code);
    switch (conduct.is) {
      case "honest":
        this.#save(this.#afterReset({ ...accepted, lie: null }, type, now));
        break;
      case "idle":
        this.#save(accepted);
        break;
      case "lying":
        this.#save({ ...accepted, lie: { faultId: conduct.faultId, to: leadsTo, dueAt: now + POWER_CHANGE_MS } });
    }
    return true;
  }

  /** Somebody at the rack uses the switch: at once, and past the management controller. */
  switchAtRack(power: Power, conduct: Conduct): void {
    const state = this.state;
    const now = this.#surroundings.clock.now();
    const claimed = this.read().reported;
    const lie: Lie | null =
      conduct.is === "lying" ? { faultId: conduct.faultId, to: settledPower(claimed), dueAt: now } : null;
    const switched = power === state.power ? state : flipped(state, power, now, this.#around);
    this.#save({ ...switched, pending: [], lie });
  }

  /** The kernel panics; false when none runs. */
  crash(): boolean {
    return this.#whileRunning((state, now) => crashed(state, now, this.#around));
  }

  /** The system was told from inside to go down; false when none runs. */
  goDown(next: "off" | "restart"): boolean {
    return this.#whileRunning((state, now) => {
      const effects = next === "restart" ? counted(state.effects, "reboots_from_inside") : state.effects;
      return shutDown({ ...state, effects }, next, now, this.#around);
    });
  }

  setBoot(boot: BootOverride): void {
    const state = this.state;
    const changed = { ...state, boot, effects: counted(state.effects, "boot_override_changes") };
    this.#save(this.#logged(changed, "boot_override_set"));
  }

  insertMedia(medium: VirtualMedium, drive: VirtualDrive = "media"): void {
    const state = this.state;
    const effects = counted(state.effects, "media_inserts");
    this.#save(this.#logged({ ...state, [drive]: medium, effects }, "media_inserted"));
  }

  ejectMedia(drive: VirtualDrive = "media"): void {
    const state = this.state;
    if ((state[drive] ?? null) === null) return;
    const effects = counted(state.effects, "media_ejects");
    this.#save(this.#logged({ ...state, [drive]: null, effects }, "media_ejected"));
  }

  setLocator(locatorLit: boolean, locatorShows: "Lit" | "Blinking" = "Blinking"): void {
    const state = this.state;
    this.#save({ ...state, locatorLit, locatorShows, effects: counted(state.effects, "locator_changes") });
  }

  /** Null: well again. */
  setAilment(sensor: SensorId | PartId, health: Ailments[SensorId] | null): void {
    const state = this.state;
    const { [sensor]: _before, ...others } = state.ailments ?? {};
    this.#save({ ...state, ailments: health == null ? others : { ...others, [sensor]: health } });
  }

  /** What the network boot server answers this machine from now on; null for what the site says. */
  setNetboot(netboot: NetbootOrder | null): void {
    this.#save({ ...this.state, netboot });
  }

  /** False when that boot is over: then nothing changes. */
  changeNetworkBoot(boot: number, change: NetworkChange): boolean {
    const state = this.state;
    if (state.life.is !== "network_boot" || state.life.boot !== boot) return false;
    this.#save(change(state, this.#surroundings.clock.now(), this.#around));
    return true;
  }

  /** Firmware that found nothing to boot goes through its order again when there is something new in it. */
  tryBootAgain(): void {
    const state = this.state;
    if (state.life.is !== "hung" || state.life.why !== "no_boot_device") return;
    this.#save({ ...state, life: { is: "post", until: this.#surroundings.clock.now() } });
  }

  /** Returns when it will be over, in simulated time. */
  beginJoin(cluster: string, fails: boolean): number {
    const state = this.state;
    const dueAt = this.#surroundings.clock.now() + JOIN_MS;
    this.#save({ ...state, joining: { cluster, dueAt, fails }, effects: counted(state.effects, "joins_started") });
    return dueAt;
  }

  /** As by hand: at once, and past all checks. False when no system runs. */
  joinAtOnce(cluster: string): boolean {
    return this.#whileRunning((state) => ({
      ...state,
      joining: null,
      kubelet: { cluster, active: true },
      effects: counted(state.effects, "joins_started", "joins"),
    }));
  }

  leaveCluster(): void {
    const now = this.#surroundings.clock.now();
    const state = this.state;
    const kubeletSilentSince = state.kubelet?.active === true ? now : state.kubeletSilentSince;
    this.#save({ ...state, joining: null, kubelet: null, kubeletSilentSince });
  }

  /** False when there is no kubelet to start or to stop. */
  setKubelet(active: boolean, anew = false): boolean {
    const state = this.state;
    if (state.kubelet === null) return false;
    if (state.kubelet.active === active && !anew) return true;
    const now = this.#surroundings.clock.now();
    const kubeletSilentSince = active ? state.kubeletSilentSince : now;
    const effects = active ? counted(state.effects, "kubelet_restarts") : state.effects;
    this.#save({ ...state, kubelet: { ...state.kubelet, active }, kubeletSilentSince, effects });
    return true;
  }

  countSshCommand(): void {
    const state = this.state;
    this.#save({ ...state, effects: counted(state.effects, "ssh_commands") });
  }

  countBackgroundProcess(): void {
    const state = this.state;
    this.#save({ ...state, effects: counted(state.effects, "background_processes") });
  }

  /** Undefined removes the file. */
  writeFile(path: string, text: string | undefined): void {
    const state = this.state;
    const { [path]: _before, ...others } = state.files;
    this.#save({ ...state, files: text === undefined ? others : { ...others, [path]: text } });
  }

  activate(): void {
    if (this.state.power === "on") this.reset("ForceRestart", { is: "honest" });
  }

  restartManager(at = this.#surroundings.clock.now()): void {
    const state = this.state;
    const effects = counted(state.effects, "manager_restarts");
    const restarted = { ...state, managerBackAt: at + MANAGER_RESTART_MS, effects };
    this.#save(logged(restarted, this.#around, ["manager_restarted", at]));
  }

  /** A command for what is under way, or there already, changes nothing; any other one replaces what is under way. */
  #afterReset(state: MachineState, type: ResetType, now: number): MachineState {
    const late = this.has("late_power");
    const delay = late ? this.#lateBy(state) : POWER_CHANGE_MS;
    const change = (to: Power, after = delay) => ({ to, dueAt: now + after });
    const hearing = state.life.is === "running" && state.pending.length === 0;
    const target = state.pending.at(-1)?.to ?? state.power;
    switch (type) {
      case "On":
        return target === "on" ? state : { ...state, pending: [change("on")] };
      case "ForceOff":
        return target === "off" ? state : { ...state, pending: [change("off")] };
      case "ForceRestart":
        return late
          ? { ...state, pending: [{ ...change("on"), resets: true }] }
          : { ...restarted(state, now, this.#around), pending: [] };
      case "PowerCycle":
        return { ...state, pending: [change("off"), change("on", 2 * delay)] };
      // Graceful ones are a request to the operating system: one that does not run does not hear it.
      case "GracefulShutdown":
        return hearing ? shutDown(state, "off", now, this.#around) : state;
      case "GracefulRestart":
        return hearing ? shutDown(state, "restart", now, this.#around) : state;
    }
  }

  #lateBy({ effects }: MachineState): number {
    return lateBy(this.#surroundings.seeded.fraction(`${this.spec.id}/late/${effects.resets}`));
  }

  #whileRunning(change: (state: MachineState, now: number) => MachineState): boolean {
    const state = this.state;
    if (state.life.is !== "running") return false;
    this.#save(change(state, this.#surroundings.clock.now()));
    return true;
  }

  #delivered(): MachineState {
    const { seeded, images } = this.#surroundings;
    return freshState(this.spec, {
      image: images.find(({ ref }) => ref === this.spec.initialImage),
      bootId: seededUuid(seeded, `${this.spec.id}/boot/0`),
    });
  }

  #logged(state: MachineState, code: MachineLogCode): MachineState {
    return logged(state, this.#around, [code, this.#surroundings.clock.now()]);
  }

  #save(state: MachineState): void {
    this.#surroundings.save(this.spec.id, state);
    const hasMoved = state.network !== this.#state.network;
    this.#state = state;
    const isSeeded = (state.secondMedium?.phoneHome ?? state.media?.phoneHome ?? null) !== null;
    if (isSeeded || state.life.is === "post" || state.life.is === "network_boot")
      this.#surroundings.boots?.(this.spec.id);
    if (hasMoved) this.#surroundings.moved?.(this.spec.id);
  }
}
