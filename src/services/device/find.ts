import { parseMac } from "../../kernel/ids.ts";
import type { BmcDeviceFilter, BmcDeviceRecord, BmcDevices } from "../../store/device/bmc-devices.ts";
import type { DeviceTraits } from "../../store/device/device.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { checkIdList } from "../call/id-list.ts";
import { unknownDevice } from "./device.ts";

/** How callers find devices of one kind. `field` is the request's field with an id, such as switch_id. */
export const deviceFinder = <R extends BmcDeviceRecord, F extends BmcDeviceFilter>(
  { list, listIds }: Pick<BmcDevices<never, R, F>, "list" | "listIds">,
  { parseId, noun, command }: Pick<DeviceTraits, "parseId" | "noun" | "command">,
  field: string,
) => ({
  /** An id wins over a name; with neither, all devices, also those marked for deletion. */
  async find(deps: ServiceDeps, { id, name }: { id?: string; name?: string }): Promise<R[]> {
    const filter = id !== undefined ? { ids: [parseId(id, field)] } : name !== undefined ? { name } : {};
    return list(deps.db, filter);
  },
  async findByIds(deps: ServiceDeps, given: readonly string[]): Promise<R[]> {
    const ids = checkIdList(given, { field: `${field}s`, most: deps.maxFindByIds, parse: parseId });
    return list(deps.db, { ids });
  },
  async searchIds(deps: ServiceDeps, filter: F): Promise<string[]> {
    const { bmcMac } = filter;
    return listIds(deps.db, { ...filter, ...(bmcMac !== undefined && { bmcMac: parseMac(bmcMac, "bmc_mac") }) });
  },
  async get(deps: ServiceDeps, id: string, idField = "id"): Promise<R> {
    const [device] = await list(deps.db, { ids: [parseId(id, idField)] });
    if (!device) throw unknownDevice({ noun, command }, id);
    return device;
  },
});
