import type { SeededValues } from "../seeded-values.ts";
import { seededUuid } from "../site/fields.ts";
import { type ImageSpec, type InstallOrder, orderFromUrl } from "../site/images.ts";
import type { MachineLogCode } from "./machine-log.ts";
import type { MachineSpec } from "./machine-spec.ts";
import { counted, type InstallSource, type Life, type MachineState, NO_OVERRIDE } from "./machine-state.ts";
import { appendToLog } from "./managed-device.ts";
import { type Network, networkFrom } from "./network.ts";
import type { Power } from "./power.ts";
import type { Trait } from "./profile.ts";

/** Simulated milliseconds. */
export const POST_MS = 60_000;
export const BOOT_MS = 120_000;
export const SHUTDOWN_MS = 20_000;
export const INSTALL_MS = 600_000;
export const JOIN_MS = 60_000;
/** A failing installation does not wait until its end to do so. */
const FAILING_INSTALL_MS = INSTALL_MS / 2;

/** What the life of a machine depends on beside its own state. */
export interface LifeSurroundings {
  readonly spec: MachineSpec;
  readonly seeded: SeededValues;
  readonly images: readonly ImageSpec[];
  readonly pxeImage: ImageSpec;
  realTimeOf(simulated: number): number;
  /** Asked once for each installation, when it starts. */
  installFails(): boolean;
  /** Asked once for each self-test, at its end. */
  hangsInPost(): boolean;
  /** Whether DHCP names a boot server. */
  hasBootServer(): boolean;
  has(trait: Trait): boolean;
}

/**
 * A system that is set to install at each boot does so for ever. Nobody who comes back after a night wants to wait until
 * all of those have been gone through, so the tail of a long absence is left out.
 */
const MOST_EVENTS = 500;

/** Carries out all that falls due until `now`, each at its own time. */
export function advance(start: MachineState, now: number, around: LifeSurroundings): MachineState {
  let state = start;
  for (let events = 0; events < MOST_EVENTS; events += 1) {
    const next = nextEvent(state);
    if (next === undefined || next.at > now) return state;
    state = next.happen(state, next.at, around);
  }
  return { ...state, life: postponed(state.life, now) };
}

interface LifeEvent {
  readonly at: number;
  happen(state: MachineState, at: number, around: LifeSurroundings): MachineState;
}

function nextEvent({ pending: [change], life, joining }: MachineState): LifeEvent | undefined {
  const events: LifeEvent[] = [];
  if (change !== undefined) events.push({ at: change.dueAt, happen: powerChangeIsDue });
  if ("until" in life) events.push({ at: life.until, happen: phaseIsOver });
  if (joining !== null) events.push({ at: joining.dueAt, happen: joinIsOver });
  return events.reduce<LifeEvent | undefined>((a, b) => (a === undefined || b.at < a.at ? b : a), undefined);
}

function powerChangeIsDue(state: MachineState, at: number, around: LifeSurroundings): MachineState {
  const [change, ...later] = state.pending;
  if (change === undefined) return state;
  if (change.resets && state.power === "on") return { ...restarted(state, at, around), pending: later };
  return { ...(change.to === state.power ? state : flipped(state, change.to, at, around)), pending: later };
}

function joinIsOver(state: MachineState): MachineState {
  if (state.joining === null) return state;
  const { cluster, fails } = state.joining;
  return fails
    ? { ...state, joining: null, effects: counted(state.effects, "joins_failed") }
    : { ...state, joining: null, kubelet: { cluster, active: true }, effects: counted(state.effects, "joins") };
}

function phaseIsOver(state: MachineState, at: number, around: LifeSurroundings): MachineState {
  const { life } = state;
  switch (life.is) {
    case "post":
      return boot(state, at, around);
    case "booting":
      return running(state, at, around);
    case "installing":
      return installed(state, life, at, around);
    case "shutting_down":
      return life.next === "restart" ? restarted(state, at, around) : flipped(state, "off", at, around);
    default:
      return state;
  }
}

/** The power really goes on or off. */
export function flipped(state: MachineState, to: Power, at: number, around: LifeSurroundings): MachineState {
  const changed = logged({ ...state, power: to, effects: counted(state.effects, "power_changes") }, around, [
    `powered_${to}`,
    at,
  ]);
  return to === "on" ? restarted(changed, at, around) : { ...stopped(changed, at), life: { is: "off" } };
}

/** From the reset vector on, as after a reset of the running system. */
export const restarted = (state: MachineState, at: number, around: LifeSurroundings): MachineState =>
  logged(
    {
      ...stopped(state, at),
      life: { is: "post", until: at + POST_MS },
      lastResetTime: Math.round(around.realTimeOf(at)),
    },
    around,
    ["post_started", at],
  );

/** The operating system hears of it and goes down by itself. */
export const shutDown = (
  state: MachineState,
  next: "off" | "restart",
  at: number,
  around: LifeSurroundings,
): MachineState =>
  logged({ ...stopped(state, at), life: { is: "shutting_down", until: at + SHUTDOWN_MS, next } }, around, [
    "os_stopping",
    at,
  ]);

export const crashed = (state: MachineState, at: number, around: LifeSurroundings): MachineState =>
  logged(
    { ...stopped(state, at), life: { is: "hung", why: "kernel_panic" }, effects: counted(state.effects, "crashes") },
    around,
    ["os_crashed", at],
  );

/** Whatever ran does not run any more: no kubelet is heard of, and a join that was under way is lost. */
function stopped(state: MachineState, at: number): MachineState {
  if (state.life.is !== "running") return state;
  return {
    ...state,
    joining: null,
    kubeletSilentSince: state.kubelet?.active === true ? at : state.kubeletSilentSince,
  };
}

/** The end of the self-test: the override is used up, and the first source that has something to boot is taken. */
function boot(before: MachineState, at: number, around: LifeSurroundings): MachineState {
  if (around.hangsInPost()) return { ...before, life: { is: "hung", why: "post" } };
  const { enabled, target } = before.boot;
  const wanted = enabled === "Disabled" ? "None" : target;
  const state: MachineState =
    enabled === "Once" ? { ...before, boot: { ...NO_OVERRIDE, mode: before.boot.mode } } : before;
  if (wanted === "BiosSetup")
    return logged({ ...state, life: { is: "hung", why: "firmware_setup" } }, around, ["setup_entered", at]);
  if (asksNetwork(wanted, before, around)) return networkBooting(state, at, around);
  if (wanted === "None" || wanted === "Hdd") return bootFromDisk(state, at, around);
  const offer = installerFor(wanted, before, around);
  if (offer === undefined) return bootFromDisk(logged(state, around, ["source_not_bootable", at]), at, around);
  return installing(state, offer, at, around);
}

/** The network is asked when the override says so, and behind a disk that has nothing to boot. What the control API arranged goes first. */
function asksNetwork(
  wanted: MachineState["boot"]["target"],
  { netboot, os, boot: { httpUri } }: MachineState,
  around: LifeSurroundings,
): boolean {
  if (!around.hasBootServer()) return false;
  if (wanted === "Pxe") return netboot === null;
  if (wanted === "UefiHttp") return httpUri === null;
  return (wanted === "None" || wanted === "Hdd") && os === null;
}

function networkBooting(state: MachineState, at: number, around: LifeSurroundings): MachineState {
  const effects = counted(state.effects, "network_boots");
  const life: Life = { is: "network_boot", boot: effects.network_boots, kernel: null, screen: "" };
  return logged({ ...state, life, effects }, around, ["boot_from_network", at]);
}

interface InstallOffer {
  readonly order: InstallOrder;
  readonly source: InstallSource;
  readonly code: MachineLogCode;
}

function installerFor(
  target: "Pxe" | "Cd" | "Usb" | "UefiHttp",
  { media, secondMedium, netboot, boot: { httpUri } }: MachineState,
  { images, pxeImage, has }: LifeSurroundings,
): InstallOffer | undefined {
  if (target === "Pxe") {
    const image = netboot === null ? pxeImage : images.find(({ ref }) => ref === netboot.image);
    if (image === undefined) return undefined;
    const order = { image, cloudInit: netboot?.cloudInit ?? null, token: netboot?.token ?? null };
    return { order, source: "pxe", code: "boot_from_network" };
  }
  const url = target === "UefiHttp" ? httpUri : (media?.image ?? null);
  const order = url === null ? undefined : orderFromUrl(url, images);
  if (order === undefined) return undefined;
  if (target === "UefiHttp") return { order, source: "uefi_http", code: "boot_from_http" };
  // An installer reads a second medium, and its own. That it sees the address of its own is the courtesy of few.
  const seen = has("medium_url_hidden") ? { ...order, cloudInit: null, token: null } : order;
  const told = { ...seen, token: secondMedium?.token ?? media?.token ?? seen.token };
  return { order: told, source: "virtual_media", code: "boot_from_media" };
}

function bootFromDisk(state: MachineState, at: number, around: LifeSurroundings): MachineState {
  return state.os === null
    ? logged({ ...state, life: { is: "hung", why: "no_boot_device" } }, around, ["no_boot_device", at])
    : logged({ ...state, life: { is: "booting", until: at + BOOT_MS } }, around, ["boot_from_disk", at]);
}

/** The disk is overwritten first: what was on it is gone, however the installation ends. */
function installing(state: MachineState, offer: InstallOffer, at: number, around: LifeSurroundings): MachineState {
  const { order, source, code } = offer;
  const fails = around.installFails();
  const until = at + (fails ? FAILING_INSTALL_MS : INSTALL_MS);
  return logged(
    {
      ...state,
      os: null,
      kubelet: null,
      files: {},
      network: null,
      life: { is: "installing", until, ...order, source, fails },
      effects: counted(state.effects, "installs_started"),
    },
    around,
    [code, at],
  );
}

function installed(
  state: MachineState,
  life: Extract<Life, { is: "installing" }>,
  at: number,
  around: LifeSurroundings,
): MachineState {
  if (life.fails) {
    const effects = counted(state.effects, "installs_failed");
    return logged({ ...state, life: { is: "hung", why: "install_failed" }, effects }, around, ["install_failed", at]);
  }
  const { image, cloudInit, token, source } = life;
  const effects = counted(state.effects, "installs");
  const os = {
    image: image.ref,
    digest: image.digest,
    kubeletVersion: image.kubeletVersion,
    cloudInit,
    token,
    source,
    number: effects.installs,
    installedAt: Math.round(around.realTimeOf(at)),
  };
  return restarted(logged({ ...state, os, effects }, around, ["install_completed", at]), at, around);
}

function running(state: MachineState, at: number, around: LifeSurroundings): MachineState {
  const effects = counted(state.effects, "boots");
  const bootId = seededUuid(around.seeded, `${around.spec.id}/boot/${effects.boots}`);
  // Whoever stopped the kubelet did so for this boot only.
  const kubelet = state.kubelet === null ? null : { ...state.kubelet, active: true };
  // Settings that make no sense leave the system with those of before.
  const read = networkFrom(state.files, around.spec.sshAddress);
  const network = "problem" in read ? state.network : asUsual(read, around.spec.sshAddress) ? null : read;
  const up: MachineState = { ...state, life: { is: "running" }, runningSince: at, bootId, kubelet, network, effects };
  return logged(up, around, ["os_running", at]);
}

export const asUsual = ({ addresses }: Network, usual: string): boolean =>
  addresses.length === 1 && addresses[0] === usual;

export const logged = (
  state: MachineState,
  around: Pick<LifeSurroundings, "realTimeOf">,
  [code, at]: readonly [MachineLogCode, number],
): MachineState => ({ ...state, log: appendToLog(state.log, code, around.realTimeOf(at)) });

const postponed = (life: Life, now: number): Life =>
  "until" in life ? { ...life, until: Math.max(life.until, now) } : life;
