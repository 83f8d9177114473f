import { parseMac } from "../../kernel/ids.ts";
import { switchLifecycle } from "../../lifecycles/switch/lifecycle.ts";
import { switchListing } from "../../store/switch/switch-list.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { is, type ListPage } from "../call/listing.ts";
import { type DeviceQuery, pageDevices } from "../device/page-devices.ts";
import { getSwitch, type SwitchView, viewSwitches } from "./switches.ts";

export { nvosAddressOf } from "../../lifecycles/switch/switch.ts";
export type { SwitchView } from "./switches.ts";

export interface SwitchQuery extends DeviceQuery {
  readonly nvosMac: string | undefined;
}

/** In the order of their ids unless told. */
export async function pageSwitches(deps: ServiceDeps, request: SwitchQuery): Promise<ListPage<SwitchView>> {
  const { nvosMac } = request;
  const page = await pageDevices(deps, { lifecycle: switchLifecycle, listing: switchListing }, request, {
    clauses: is("nvos_mac", nvosMac && parseMac(nvosMac, "nvos_mac")),
    query: { nvosMac },
  });
  return { ...page, items: await viewSwitches(deps, page.items) };
}

export async function viewSwitch(deps: ServiceDeps, id: string): Promise<SwitchView> {
  const [view] = await viewSwitches(deps, [await getSwitch(deps, id)]);
  if (!view) throw new Error("a switch has no view");
  return view;
}
