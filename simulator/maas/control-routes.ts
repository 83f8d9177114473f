import { z } from "zod";
import { type ControlCall, noContent, ok, type Reply, type Route, refused } from "../control-route.ts";
import { parseInput } from "../invalid-input.ts";
import { ApiFailure } from "./api-failure.ts";
import type { HostSpec } from "./host.ts";
import type { MachineRecord } from "./machine-record.ts";
import type { Region } from "./region.ts";
import { nameOf } from "./statuses.ts";

/** The people around a MAAS: they switch servers on, delete machines, and read its log. */
export const MAAS_ROUTES: readonly Route[] = [
  ["GET", /^\/maas$/, onMaas(({ region, url, apiKey }) => ok({ url, api_key: apiKey, hosts: hosts(region) }))],
  ["GET", /^\/maas\/calls$/, onMaas(({ region }) => ok(region.calls()))],
  ["GET", /^\/maas\/machines$/, onMaas(({ region }) => ok(region.machines().map(truthOf)))],
  ["DELETE", /^\/maas\/machines\/([^/]+)$/, onMaas(({ region }, { id }) => remove(region, id))],
  ["POST", /^\/maas\/hosts\/([^/]+)\/discover$/, onMaas(({ region }, { id, body }) => discover(region, id, body))],
];

type Maas = NonNullable<ReturnType<ControlCall["options"]["maas"]>>;

function onMaas(handle: (maas: Maas, call: ControlCall) => Reply): (call: ControlCall) => Reply {
  return (call) => {
    const maas = call.options.maas();
    if (maas === undefined) return refused(404, "the site has no MAAS; racks=N,maas=H gives it one");
    try {
      return handle(maas, call);
    } catch (error) {
      if (error instanceof ApiFailure) return refused(error.status, error.message);
      throw error;
    }
  };
}

/** What a datacentre writes down of its servers, and which machine of MAAS each is. */
const hosts = (region: Region) => {
  const machines = Map.groupBy(region.machines(), ({ hostId }) => hostId);
  return [...region.hosts.values()].map((host) => ({
    ...hostOf(host),
    system_ids: (machines.get(host.id) ?? []).map(({ systemId }) => systemId),
  }));
};

const hostOf = ({ id, ipmiAddress, ipmiMac, username, password, mac, roceMacs, serial, systemUuid }: HostSpec) => ({
  ...{ id, ipmi_address: ipmiAddress, ipmi_mac: ipmiMac, ipmi_username: username, ipmi_password: password },
  ...{ mac, roce_macs: roceMacs, serial, system_uuid: systemUuid },
});

const truthOf = ({ systemId, hostId, hostname, status, power, owner, userData }: MachineRecord) => ({
  ...{ system_id: systemId, host: hostId, hostname, status, status_name: nameOf(status), power, owner },
  user_data: userData,
});

/** Behind everybody's back. */
function remove(region: Region, id: string): Reply {
  region.machine(id);
  region.remove(id);
  return noContent;
}

const discovery = z.strictObject({ hostname: z.string().min(1).max(63).optional() });

function discover(region: Region, id: string, body: unknown): Reply {
  const host = region.hosts.get(id);
  if (host === undefined) return refused(404, `there is no server ${id}; GET /maas lists them`);
  const { hostname } = parseInput(discovery, body ?? {}, "body");
  const machine = region.discover(host);
  return ok(truthOf(hostname === undefined ? machine : region.save({ ...machine, hostname })));
}
