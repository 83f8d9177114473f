import type { InstalledFirmware } from "../../capabilities/rack/firmware.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { NewChild } from "../../runs/children/child-run.ts";
import type { Step } from "../../runs/model/plan/plan.ts";
import { type ActivateFirmwarePayload, activateFirmware } from "../../runs/steps/rack/activate-firmware.ts";
import { describeVersions, isAt, partsFor, type WantedFirmware } from "../../runs/steps/rack/firmware-parts.ts";
import { type FollowJobPayload, followFirmwareJob } from "../../runs/steps/rack/managed/follow-firmware-job.ts";
import { setDevicePower } from "../../runs/steps/rack/set-device-power.ts";
import { type UpdateFirmwarePayload, updateFirmware } from "../../runs/steps/rack/update-firmware.ts";
import type { RunTarget } from "../../runs/targets/run-target.ts";
import { listPowerShelves } from "../../store/power-shelf/power-shelves.ts";
import { listSwitches } from "../../store/switch/switches.ts";
import type { RunDeps } from "../run/deps.ts";

export interface PreviewedComponent {
  readonly component: string;
  /** As the device shows it; null: it could not be read. */
  readonly from: string | null;
  readonly to: string;
  readonly change: "flashed" | "stays" | "unknown";
  /** Why it is unknown. */
  readonly message: string;
}

export interface PreviewedDevice {
  readonly kind: string;
  readonly id: string;
  /** Of switches and power shelves; empty for machines. */
  readonly name: string;
  readonly components: readonly PreviewedComponent[];
  /** What its users notice. */
  readonly disturbances: readonly string[];
}

type Deps = Pick<RunDeps, "db" | "readFirmware">;

/** All devices together: one that hangs costs the caller no more than this. */
const LONGEST_MS = 15_000;
const AT_ONCE = 12;

/** What the runs on each device would do to it, by their own steps and by the versions that the device shows now. */
export async function previewDevices(
  deps: Deps,
  targets: readonly RunTarget[],
  children: readonly NewChild[],
): Promise<readonly PreviewedDevice[]> {
  const signal = AbortSignal.timeout(LONGEST_MS);
  const previews: PreviewedDevice[] = [];
  const names = await namesOf(deps, targets);
  for (let at = 0; at < targets.length; at += AT_ONCE) {
    const some = targets.slice(at, at + AT_ONCE).map(async (target) => {
      const steps = children.filter((child) => isSame(child.target, target)).flatMap((child) => child.steps);
      return { ...(await previewDevice(deps, target, steps, signal)), name: names.get(target.id) ?? "" };
    });
    previews.push(...(await Promise.all(some)));
  }
  return previews;
}

async function namesOf({ db }: Deps, targets: readonly RunTarget[]): Promise<ReadonlyMap<string, string>> {
  const ids = (kind: string) => targets.flatMap((target) => (target.kind === kind ? [target.id] : []));
  const named = await Promise.all([
    listSwitches(db, { ids: ids("switch") }),
    listPowerShelves(db, { ids: ids("power_shelf") }),
  ]);
  return new Map(named.flat().map(({ id, name }) => [id, name]));
}

const isSame = (one: RunTarget, other: RunTarget): boolean => one.kind === other.kind && one.id === other.id;

async function previewDevice(
  deps: Deps,
  { kind, id }: RunTarget,
  steps: readonly Step[],
  signal: AbortSignal,
): Promise<Omit<PreviewedDevice, "name">> {
  const managed = payloadsOf<FollowJobPayload>(steps, followFirmwareJob.kind).flatMap(({ wanted }) => wanted);
  const updates: readonly Update[] = [
    ...payloadsOf<UpdateFirmwarePayload>(steps, updateFirmware.kind),
    ...managed.map((one) => ({ ...one, activation: "none" as const })),
  ];
  const installed = updates.length === 0 ? [] : await readFirmware(deps, { kind, id }, signal);
  const components = updates.map((update) => componentOf(update, installed));
  const changing = updates.filter((_, at) => components[at]?.change !== "stays");
  const isSure = components.every(({ change }) => change !== "unknown");
  const restarts =
    managed.length === 0 ? restartsOf(steps, changing, isSure) : changing.slice(0, 1).map(() => BY_MANAGER);
  return { kind, id, components, disturbances: [...restarts, ...switchedBy(steps)] };
}

const BY_MANAGER = "the rack manager restarts it where the firmware needs that";

type Update = WantedFirmware & Pick<UpdateFirmwarePayload, "activation">;

const payloadsOf = <P>(steps: readonly Step[], kind: string): readonly P[] =>
  steps.filter((step) => step.kind === kind).map(({ payload }) => payload as P);

type Read = readonly InstalledFirmware[] | { readonly unread: string };

async function readFirmware(deps: Deps, device: RunTarget, signal: AbortSignal): Promise<Read> {
  if (!deps.readFirmware) return { unread: "this server reaches no devices" };
  try {
    return await deps.readFirmware(device, signal);
  } catch (error) {
    return { unread: signal.aborted ? "the device did not answer in time" : messageOf(error) };
  }
}

function componentOf(update: Update, read: Read): PreviewedComponent {
  const { component, version: to } = update;
  const unknown = (message: string) => ({ component, from: null, to, change: "unknown", message }) as const;
  if ("unread" in read) return unknown(read.unread);
  try {
    const parts = partsFor(read, update);
    return {
      component,
      from: describeVersions(parts),
      to,
      change: isAt(parts, to) ? "stays" : "flashed",
      message: "",
    };
  } catch (error) {
    return unknown(messageOf(error));
  }
}

const RESTARTS = {
  bmc_reset: "its BMC restarts",
  host_reset: "reboots",
  power_cycle: "loses power and boots again",
} as const satisfies { readonly [activation in ActivateFirmwarePayload["activation"]]: string };

/** The restarts that activate what changes. A component without a restart of its own is activated by the last one. */
function restartsOf(steps: readonly Step[], changing: readonly Update[], isSure: boolean): readonly string[] {
  const restarts = payloadsOf<ActivateFirmwarePayload>(steps, activateFirmware.kind).map(
    ({ activation }) => activation,
  );
  const takes = new Set(
    changing
      .filter(({ activation }) => activation !== "none")
      .map(({ activation }) => restarts.find((one) => one === activation) ?? restarts.at(-1)),
  );
  const unasked = changing.some(({ component, activation }) => component === "bmc" && activation === "none");
  return [
    ...(unasked ? ["its BMC may restart by itself"] : []),
    ...restarts.filter((one) => takes.has(one)).map((one) => (isSure ? RESTARTS[one] : `${RESTARTS[one]}, if needed`)),
  ];
}

function switchedBy(steps: readonly Step[]): readonly string[] {
  const wanted = payloadsOf<{ readonly desired: "on" | "off" }>(steps, setDevicePower.kind).map(
    ({ desired }) => desired,
  );
  if (wanted.includes("off"))
    return [wanted.includes("on") ? "loses power and is switched on again" : "is switched off"];
  return wanted.includes("on") ? ["is switched on if it is off"] : [];
}
