import { invalid } from "./api-failure.ts";
import { type ApiCall, type ApiReply, type ApiRoute, ok } from "./api-route.ts";
import { SUBNETS } from "./hardware.ts";
import { eventJson, subnetJson, timeOf } from "./machine-json.ts";
import { SERIES, USER } from "./operations.ts";
import type { Region } from "./region.ts";

const CONFIG: Readonly<Record<string, unknown>> = {
  default_storage_layout: "flat",
  enable_disk_erasing_on_release: false,
  disk_erase_with_secure_erase: true,
  disk_erase_with_quick_erase: false,
  hardware_sync_interval: "15m",
  node_timeout: 30,
  maas_name: "sim",
};
const VERSION = { version: "3.5.3", subversion: "", capabilities: ["networks-management", "static-ipaddresses"] };
const MOST_EVENTS = 1_000;

/** What preflight asks of a region, and its log. */
export const OTHER_ROUTES: readonly ApiRoute[] = [
  { method: "GET", path: /^version\/$/, op: null, isAnonymous: true, handle: () => ok(VERSION) },
  {
    ...{ method: "GET", path: /^users\/$/, op: "whoami" },
    handle: () =>
      ok({
        username: USER,
        email: "admin@example.com",
        is_superuser: true,
        resource_uri: `/MAAS/api/2.0/users/${USER}/`,
      }),
  },
  { method: "GET", path: /^maas\/$/, op: "get_config", handle: config },
  { method: "GET", path: /^subnets\/$/, op: null, handle: () => ok(SUBNETS.map(({ id }) => subnetJson(id))) },
  { method: "GET", path: /^boot-resources\/$/, op: null, handle: images },
  { method: "GET", path: /^rackcontrollers\/$/, op: null, handle: () => ok([RACK_CONTROLLER]) },
  { method: "GET", path: /^events\/$/, op: "query", handle: events },
  { method: "GET", path: /^discovery\/$/, op: null, handle: ({ region }) => ok(neighbours(region)) },
  { method: "GET", path: /^discovery\/$/, op: "by_unknown_mac", handle: unknownNeighbours },
];

/** Management controllers are on as long as there is current in the rack: the rack controller has heard each of them. */
const neighbours = (region: Region) =>
  [...region.hosts.values()].map(({ ipmiAddress, ipmiMac }) => ({
    discovery_id: Buffer.from(`${ipmiAddress},${ipmiMac}`).toString("base64"),
    ...{ ip: ipmiAddress, mac_address: ipmiMac, mac_organization: "Dell Inc.", hostname: null },
    last_seen: timeOf(region, region.clock.now()),
    ...{ fabric_name: "fabric-0", vid: null },
    observer: { system_id: "4y3h7n", hostname: "maas-rack", interface_id: 1, interface_name: "eth0" },
    resource_uri: `/MAAS/api/2.0/discovery/${ipmiAddress}/`,
  }));

/** All but those whose MAC address is that of a port of a machine. */
function unknownNeighbours({ region }: ApiCall): ApiReply {
  const known = new Set(region.machines().flatMap(({ interfaces }) => interfaces.map(({ mac }) => mac)));
  return ok(neighbours(region).filter(({ mac_address }) => !known.has(mac_address)));
}

function config({ query }: ApiCall): ApiReply {
  const name = query.get("name") ?? "";
  if (!Object.hasOwn(CONFIG, name)) throw invalid(name, `${name} is not a valid config setting.`);
  return ok(CONFIG[name]);
}

/** Without images where somebody has removed them all. */
function images({ region }: ApiCall): ApiReply {
  return ok(region.faults.strike("images_gone", { device: "maas" }) === undefined ? SERIES.map(image) : []);
}

const image = (series: string, index: number) => ({
  ...{ id: index + 1, type: "Synced", name: `ubuntu/${series}`, architecture: "amd64/generic", subarches: "generic" },
  resource_uri: `/MAAS/api/2.0/boot-resources/${index + 1}/`,
});

const RACK_CONTROLLER = {
  system_id: "4y3h7n",
  hostname: "maas-rack",
  fqdn: "maas-rack.maas",
  node_type: 4,
  node_type_name: "Region and rack controller",
  service_set: [
    { name: "rackd", status: "running", status_info: "" },
    { name: "dhcpd", status: "running", status_info: "" },
    { name: "tftp", status: "running", status_info: "" },
  ],
  resource_uri: "/MAAS/api/2.0/rackcontrollers/4y3h7n/",
};

const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"];

/** The newest first. */
function events({ region, query }: ApiCall): ApiReply {
  const limit = Number(query.get("limit") ?? "100");
  if (!(limit >= 1 && limit <= MOST_EVENTS)) throw invalid("limit", `must be 1 to ${MOST_EVENTS}`);
  const [before, after] = [query.get("before"), query.get("after")].map((id) => (id ? Number(id) : undefined));
  const least = LEVELS.indexOf(query.get("level") ?? "INFO");
  const all = region
    .machines()
    .filter(({ systemId }) => !query.has("id") || query.all("id").includes(systemId))
    .flatMap((machine) => eventJson(region, machine))
    .filter(({ level }) => LEVELS.indexOf(level) >= least)
    .filter(({ id }) => (before === undefined || id < before) && (after === undefined || id > after))
    .sort((one, other) => other.id - one.id)
    .slice(0, limit);
  return ok({ count: all.length, events: all, next_uri: "", prev_uri: "" });
}
