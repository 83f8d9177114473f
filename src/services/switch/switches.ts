import { parseMac } from "../../kernel/ids.ts";
import { switchLifecycle } from "../../lifecycles/switch/lifecycle.ts";
import { type SwitchFilter, type SwitchRecord, switches, switchTraits } from "../../store/switch/switches.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { deleteDevice, forceDeleteDevice } from "../device/deletion.ts";
import { deviceFinder } from "../device/find.ts";
import { type DeviceStanding, findStandings } from "../device/standing.ts";

export type { SwitchState } from "../../lifecycles/switch/lifecycle.ts";
export type { ReprovisioningStep } from "../../lifecycles/switch/switch.ts";
export type { SwitchRecord } from "../../store/switch/switches.ts";

const KIND = switchLifecycle.kind;

const finder = deviceFinder(switches, switchTraits, "switch_id");
export const { find: findSwitches, findByIds: findSwitchesByIds, get: getSwitch } = finder;

export const searchSwitchIds = (deps: ServiceDeps, { nvosMac, ...filter }: SwitchFilter): Promise<string[]> =>
  finder.searchIds(deps, { ...filter, ...(nvosMac !== undefined && { nvosMac: parseMac(nvosMac, "nvos_mac") }) });

export const deleteSwitch = (deps: ServiceDeps, caller: Caller, id: string): Promise<void> =>
  deleteDevice(deps, caller, { kind: KIND, id, field: "id" });

/** Returns how many network interfaces its record had: that of its BMC, and those of its operating system. */
export async function forceDeleteSwitch(deps: ServiceDeps, caller: Caller, id: string): Promise<number> {
  const { nvosMacs } = await getSwitch(deps, id, "switch_id");
  await forceDeleteDevice(deps, caller, { kind: KIND, id, field: "switch_id" });
  return 1 + nvosMacs.length;
}

/** A switch and all there is to say about where it stands. */
export interface SwitchView extends DeviceStanding {
  readonly device: SwitchRecord;
}

export async function viewSwitches(deps: ServiceDeps, devices: readonly SwitchRecord[]): Promise<SwitchView[]> {
  const standings = await findStandings(deps, switchLifecycle, devices);
  return standings.map((standing, at) => ({ ...standing, device: devices[at] as SwitchRecord }));
}
