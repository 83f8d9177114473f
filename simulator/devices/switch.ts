import type { DeviceSurroundings } from "./managed-device.ts";
import type { PowerPhase } from "./power.ts";
import {
  NO_EFFECTS,
  type PowerEffects,
  PoweredDevice,
  type PoweredDeviceSpec,
  type PoweredState,
  poweredState,
} from "./powered-device.ts";

/** Simulated milliseconds. */
const SWITCH_BOOT_MS = 60_000;
const FABRIC_MS = 60_000;
/** Until a set of changes is in force. */
const APPLY_MS = 10_000;

/** What a switch is; follows from the site and the seed and never changes. */
export interface SwitchSpec extends PoweredDeviceSpec {
  readonly kind: "switch";
  /** Counts the switches of a rack from 0. */
  readonly trayIndex: number;
  /** Where its operating system answers, by which port, and to whom. */
  readonly nvos: {
    readonly address: string;
    readonly mac: string;
    readonly username: string;
    readonly password: string;
  };
  /** Whether it runs the fabric of its rack when it is first started. */
  readonly runsFabric: boolean;
}

export interface SwitchEffects extends PowerEffects {
  readonly restart_commands: number;
  /** How often the controller of the fabric was started. */
  readonly fabric_starts: number;
  readonly configuration_changes: number;
  /** Sets of changes that somebody opened. */
  readonly revisions_opened: number;
}

type ClusterState = "enabled" | "disabled";

interface Revision {
  readonly state: "pending" | "apply" | "applied";
  /** While it is being applied, in simulated time. */
  readonly dueAt?: number;
  /** What it changes; absent: nothing. */
  readonly cluster?: ClusterState;
}

interface SwitchState extends PoweredState {
  readonly effects: SwitchEffects;
  /** In simulated time: when its operating system answers, and since when it runs the fabric's controller. */
  readonly upAt: number;
  readonly controllerSince: number | null;
  /** The fabric comes to nothing for as long as this fault rule is there. */
  readonly fabricFault: string | null;
  readonly cluster: ClusterState;
  readonly revisions: Readonly<Record<string, Revision>>;
}

export interface SwitchSurroundings extends DeviceSurroundings {
  /** The switches of the same rack, itself too. */
  inRack(rack: string): readonly Switch[];
  /** Asked each time when the controller of the fabric is started: the fault rule that keeps it from ever being configured. */
  fabricFault(id: string): string | undefined;
}

/** What a switch says of the fabric. */
export interface FabricSaid {
  readonly status: "ok" | "not ok";
  readonly reason: string;
  readonly additionInfo: "CONTROL_PLANE_STATE_CONFIGURED" | "CONTROL_PLANE_STATE_UNCONFIGURED";
}

/** A switch of a rack: its power, its operating system, and the fabric that it may be the controller of. */
export class Switch extends PoweredDevice<SwitchSpec, SwitchState> {
  protected readonly registry = "Switch";
  readonly #around: SwitchSurroundings;

  constructor(spec: SwitchSpec, surroundings: SwitchSurroundings) {
    super(spec, surroundings, {
      ...poweredState(spec.initialPower),
      effects: { ...NO_EFFECTS, restart_commands: 0, fabric_starts: 0, configuration_changes: 0, revisions_opened: 0 },
      upAt: 0,
      controllerSince: spec.runsFabric ? 0 : null,
      fabricFault: null,
      cluster: spec.runsFabric ? "enabled" : "disabled",
      revisions: {},
    });
    this.#around = surroundings;
  }

  read(): { readonly power: PowerPhase; readonly reported: PowerPhase; readonly watts: number } {
    return { ...this.readPower(), watts: this.isOn ? 1_250 : 40 };
  }

  /** Whether its operating system answers. */
  get isUp(): boolean {
    const { power, upAt } = this.settle();
    return power === "on" && this.surroundings.clock.now() >= upAt;
  }

  get cluster(): ClusterState {
    return this.settle().cluster;
  }

  /** A command through the management controller; false while it has no power. */
  restart(isIdle: boolean): boolean {
    const state = this.settle();
    if (state.power === "off") return false;
    const effects = { ...state.effects, restart_commands: state.effects.restart_commands + 1 };
    const now = this.surroundings.clock.now();
    const log = this.logged(state.log, "restarted", now);
    this.save(isIdle ? { ...state, effects } : this.started({ ...state, effects, log }, now));
    return true;
  }

  /** The name of a new set of changes, which has no effect until it is applied. */
  openRevision(): string {
    const state = this.settle();
    const opened = (state.effects.revisions_opened ?? 0) + 1;
    const name = `changeset/${this.spec.nvos.username}/${opened}`;
    const effects = { ...state.effects, revisions_opened: opened };
    this.save({ ...state, effects, revisions: { ...state.revisions, [name]: { state: "pending" } } });
    return name;
  }

  get revisions(): Readonly<Record<string, Revision>> {
    return this.settle().revisions;
  }

  /** False where there is none that can still be left alone. */
  removeRevision(name: string): boolean {
    const state = this.settle();
    const { [name]: revision, ...revisions } = state.revisions;
    if (revision?.state !== "pending") return false;
    this.save({ ...state, revisions });
    return true;
  }

  /** False where there is no such set of changes that is still open. */
  changeCluster(name: string, cluster: ClusterState): boolean {
    const state = this.settle();
    if (state.revisions[name]?.state !== "pending") return false;
    this.save({ ...state, revisions: { ...state.revisions, [name]: { state: "pending", cluster } } });
    return true;
  }

  applyRevision(name: string): boolean {
    const state = this.settle();
    const revision = state.revisions[name];
    if (revision === undefined) return false;
    if (revision.state !== "pending") return true;
    const dueAt = this.surroundings.clock.now() + APPLY_MS;
    this.save({ ...state, revisions: { ...state.revisions, [name]: { ...revision, state: "apply", dueAt } } });
    return true;
  }

  protected override settle(): SwitchState {
    const state = super.settle();
    const now = this.surroundings.clock.now();
    const due = Object.entries(state.revisions).filter(
      ([, { state: is, dueAt = 0 }]) => is === "apply" && dueAt <= now,
    );
    if (due.length === 0) return state;
    const settled = due.reduce((before, [name, revision]) => applied(before, name, revision), state);
    this.save(settled);
    return settled;
  }

  /** At once, by who does not go through sets of changes. */
  enableCluster(): void {
    const name = this.openRevision();
    const state = this.settle();
    this.save(applied(state, name, { state: "pending", cluster: "enabled" }));
  }

  /** The controller of the fabric; false while the cluster is not enabled. One that runs goes on. */
  startController(): boolean {
    const state = this.settle();
    if (state.cluster !== "enabled") return false;
    const fault = this.#around.fabricFault(this.spec.id) ?? null;
    const effects = { ...state.effects, fabric_starts: state.effects.fabric_starts + 1 };
    const controllerSince = state.controllerSince ?? this.surroundings.clock.now();
    this.save({ ...state, controllerSince, fabricFault: fault, effects });
    return true;
  }

  get fabric(): FabricSaid {
    const said = this.#around.inRack(this.spec.rack).map((each) => each.runsController());
    if (said.includes("configured"))
      return { status: "ok", reason: "", additionInfo: "CONTROL_PLANE_STATE_CONFIGURED" };
    const reason = said.includes("failing") ? "GFM: UNINITIALIZED" : "";
    return { status: "not ok", reason, additionInfo: "CONTROL_PLANE_STATE_UNCONFIGURED" };
  }

  /** What the controller of the fabric has come to here. */
  runsController(): "no" | "starting" | "failing" | "configured" {
    const { controllerSince, fabricFault } = this.settle();
    if (controllerSince === null || !this.isUp) return "no";
    if (fabricFault !== null && this.surroundings.isFaultPresent(fabricFault)) return "failing";
    return this.surroundings.clock.now() >= controllerSince + FABRIC_MS ? "configured" : "starting";
  }

  protected override started(state: SwitchState, at: number): SwitchState {
    const upAt = at + SWITCH_BOOT_MS;
    return { ...state, upAt, controllerSince: state.controllerSince === null ? null : upAt };
  }
}

function applied(state: SwitchState, name: string, { dueAt: _, ...revision }: Revision): SwitchState {
  const cluster = revision.cluster ?? state.cluster;
  return {
    ...state,
    cluster,
    controllerSince: cluster === "enabled" ? state.controllerSince : null,
    effects: { ...state.effects, configuration_changes: state.effects.configuration_changes + 1 },
    revisions: { ...state.revisions, [name]: { ...revision, state: "applied" } },
  };
}
