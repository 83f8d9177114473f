import { BlockList, isIP } from "node:net";
import { AppError } from "../../kernel/errors.ts";
import {
  findRoceAddressHolders,
  listRoceAssignments,
  putRoceAssignments,
  type RoceAssignment,
  type RoceLink,
  removeRoceAssignment,
} from "../../store/fleet/roce.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import { checkPageSize, cutPage, type Page, parsePageToken } from "../call/paging.ts";
import { audit } from "../catalog/audit.ts";
import { refusal } from "../catalog/entries.ts";
import { checkName, getSite } from "./sites.ts";

export type { RoceAssignment, RoceLink } from "../../store/fleet/roce.ts";

const KIND = "fleet_roce";
const idOf = (site: string, hostname: string): string => `${site}/${hostname}`;
const MOST_LINKS = 64;
/** Of one call. */
const MOST_NODES = 1_000;

export interface RoceOfNode {
  readonly hostname: string;
  readonly links: readonly RoceLink[];
}

/** Each node named gets these links in place of those that it had, all nodes or none.. */
export async function setRoceAssignments(
  deps: ServiceDeps,
  caller: Caller,
  { site: name, nodes }: { readonly site: string; readonly nodes: readonly RoceOfNode[] },
): Promise<readonly RoceAssignment[]> {
  const site = checkName(name, "site");
  checkNodes(nodes);
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "fleet_site", id: site }]);
    await getSite({ db: tx }, site);
    const hostnames = nodes.map(({ hostname }) => hostname);
    await refuseTaken(tx, site, nodes);
    const before = new Set((await listRoceAssignments(tx, { site, hostnames })).map(({ hostname }) => hostname));
    const createdBy = actorOf(caller);
    await putRoceAssignments(
      tx,
      nodes.map((node) => ({ ...node, site, createdBy })),
    );
    for (const { hostname, links } of nodes) {
      const type = before.has(hostname) ? "changed" : "created";
      const data = { links: links.map(({ port, ipAddress }) => ({ port, ip_address: ipAddress })) };
      await audit(tx, caller, { kind: KIND, id: idOf(site, hostname), type, data });
    }
    return listRoceAssignments(tx, { site, hostnames });
  });
}

/** In the order of sites and host names; of one site, or all. */
export async function pageRoceAssignments(
  deps: ServiceDeps,
  request: { readonly site: string; readonly hostname: string; readonly pageSize: number; readonly pageToken: string },
): Promise<Page<RoceAssignment>> {
  const site = request.site === "" ? undefined : checkName(request.site, "site");
  const hostname = request.hostname === "" ? undefined : checkHostname(request.hostname, "hostname");
  const query = { of: "fleet_roce", site: site ?? "", hostname: hostname ?? "" };
  const size = checkPageSize(request.pageSize);
  const after = parsePageToken(deps.secrets, request.pageToken, query, 2);
  const rows = await listRoceAssignments(deps.db, {
    ...(site !== undefined && { site }),
    ...(hostname !== undefined && { hostnames: [hostname] }),
    after,
    limit: size + 1,
  });
  return cutPage(deps.secrets, rows, size, query, (row) => [row.site, row.hostname]);
}

export async function deleteRoceAssignment(
  deps: ServiceDeps,
  caller: Caller,
  request: { readonly site: string; readonly hostname: string },
): Promise<void> {
  const site = checkName(request.site, "site");
  const hostname = checkHostname(request.hostname, "hostname");
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "fleet_site", id: site }]);
    if (!(await removeRoceAssignment(tx, site, hostname)))
      throw new AppError("not_found", `${hostname} has no RoCE assignment at site ${site}`, {
        field: "hostname",
        next: `millwright fleet roce list --site ${site}`,
      });
    await audit(tx, caller, { kind: KIND, id: idOf(site, hostname), type: "deleted", data: {} });
  });
}

async function refuseTaken(
  tx: Parameters<typeof findRoceAddressHolders>[0],
  site: string,
  nodes: readonly RoceOfNode[],
): Promise<void> {
  const [holder] = await findRoceAddressHolders(tx, {
    site,
    addresses: nodes.flatMap(({ links }) => links.map(({ ipAddress }) => ipAddress)),
    butFor: nodes.map(({ hostname }) => hostname),
  });
  if (holder)
    throw new AppError("failed_precondition", `${holder.ipAddress} belongs to ${holder.hostname} at site ${site}`, {
      field: "nodes",
      next: `millwright fleet roce list --site ${site}`,
    });
}

const HOSTNAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const PORT = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$/;

function checkHostname(text: string, field: string): string {
  if (HOSTNAME.test(text)) return text;
  throw refusal(field, `${JSON.stringify(text.slice(0, 80))} must be 1 to 63 letters a-z, digits and dashes`);
}

function checkNodes(nodes: readonly RoceOfNode[]): void {
  if (nodes.length === 0 || nodes.length > MOST_NODES)
    throw refusal("nodes", `must name between 1 and ${MOST_NODES} nodes, got ${nodes.length}`);
  const hosts = new Set<string>();
  const addresses = new Set<string>();
  for (const [at, { hostname, links }] of nodes.entries()) {
    const field = `nodes[${at}]`;
    if (hosts.has(checkHostname(hostname, `${field}.hostname`)))
      throw refusal(`${field}.hostname`, `${hostname} is named twice`);
    hosts.add(hostname);
    if (links.length === 0 || links.length > MOST_LINKS)
      throw refusal(`${field}.links`, `must be between 1 and ${MOST_LINKS} links, got ${links.length}`);
    const ports = new Set<string>();
    for (const [place, link] of links.entries()) checkLink(link, `${field}.links[${place}]`, ports, addresses);
  }
}

function checkLink({ port, subnet, ipAddress }: RoceLink, field: string, ports: Set<string>, addresses: Set<string>) {
  if (!PORT.test(port)) throw refusal(`${field}.port`, "must be the name of a port, or its MAC address");
  if (ports.has(port)) throw refusal(`${field}.port`, `${port} is named twice`);
  ports.add(port);
  if (isIP(ipAddress) === 0) throw refusal(`${field}.ip_address`, "must be an IP address, such as 10.10.0.5");
  if (addresses.has(ipAddress)) throw refusal(`${field}.ip_address`, `${ipAddress} is named twice`);
  addresses.add(ipAddress);
  if (!holds(subnet, ipAddress))
    throw refusal(`${field}.subnet`, `must be a network that holds ${ipAddress}, such as 10.10.0.0/24`);
}

function holds(subnet: string, ipAddress: string): boolean {
  const [network = "", bits = "", ...rest] = subnet.split("/");
  const family = isIP(network);
  const longest = family === 4 ? 32 : 128;
  if (family === 0 || rest.length > 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > longest) return false;
  if (isIP(ipAddress) !== family) return false;
  const list = new BlockList();
  const version = family === 4 ? "ipv4" : "ipv6";
  list.addSubnet(network, Number(bits), version);
  return list.check(ipAddress, version);
}
