import type { MaasNeighbour, MaasTarget } from "../../capabilities/fleet/maas.ts";
import { type MaasMachine, type ObservedMaasState, observedStateOf } from "../../capabilities/fleet/maas-machine.ts";
import { findHoldersOf, type HoldersOf } from "../../store/fleet/nodes.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { asCallerError, callOf, type MaasGate, maasOf, targetOfSite } from "./site-target.ts";
import { getSite } from "./sites.ts";

export interface Candidate {
  /** maas: MAAS has a machine of it. network: MAAS has seen it on a network, and has no machine of it. */
  readonly source: "maas" | "network";
  /** Empty on the network: MAAS has none. */
  readonly systemId: string;
  readonly hostname: string;
  readonly state: ObservedMaasState | "";
  readonly statusName: string;
  readonly power: MaasMachine["power"];
  readonly serial: string | null;
  readonly macs: readonly string[];
  /** Where it was seen: a management controller is onboarded by this address. */
  readonly ip: string | null;
  /** The maker of its port; null: unknown. */
  readonly vendor: string | null;
  /** Why it cannot be onboarded as it is; empty: it can. */
  readonly obstacle: string;
}

interface InMaas {
  readonly machines: readonly MaasMachine[];
  readonly neighbours: readonly MaasNeighbour[];
}

/** What could be onboarded at a site: the machines of MAAS, and who is on its networks beside them. Two calls to MAAS, however many there are. */
export async function listCandidates(
  deps: ServiceDeps,
  { site: name, all }: { readonly site: string; readonly all: boolean },
): Promise<readonly Candidate[]> {
  const site = await getSite(deps, name);
  const target = await targetOfSite(deps, site);
  const { machines, neighbours } = await asCallerError("site", () => listOnce(deps, target));
  const holders = await findHoldersOf(deps.db, {
    site: name,
    systemIds: machines.map(({ systemId }) => systemId),
    ips: neighbours.flatMap(({ ip }) => ip ?? []),
  });
  const candidates = [
    ...machines.map((machine) => machineCandidate(machine, holders)).toSorted(byHostname),
    ...neighbours.map((neighbour) => neighbourCandidate(neighbour, holders)),
  ];
  return candidates.filter(({ obstacle }) => all || obstacle === "");
}

const byHostname = (one: Candidate, other: Candidate): number => (one.hostname < other.hostname ? -1 : 1);

/** Lists may be large: callers who ask for the same ones at the same moment get one answer. */
const underWay = new WeakMap<MaasGate, Map<string, Promise<InMaas>>>();

function listOnce(deps: ServiceDeps, target: MaasTarget): Promise<InMaas> {
  const maas = maasOf(deps);
  const lists = underWay.get(maas) ?? new Map<string, Promise<InMaas>>();
  underWay.set(maas, lists);
  const key = JSON.stringify(target);
  const list = lists.get(key) ?? listAll(maas, target).finally(() => lists.delete(key));
  lists.set(key, list);
  return list;
}

async function listAll(maas: MaasGate, target: MaasTarget): Promise<InMaas> {
  const call = callOf("candidates");
  const [machines, neighbours] = await Promise.all([
    maas.listMachines(target, {}, call),
    maas.listNeighbours(target, call),
  ]);
  return { machines, neighbours };
}

function machineCandidate(machine: MaasMachine, holders: HoldersOf): Candidate {
  const { systemId, hostname, statusName, power, serial, interfaces, ipAddresses } = machine;
  const state = observedStateOf(machine);
  const holder = holders.bySystemId.get(systemId);
  return {
    ...{ source: "maas", systemId, hostname, state, statusName, power, serial, vendor: null },
    macs: interfaces.flatMap(({ mac }) => mac ?? []),
    ip: ipAddresses[0] ?? null,
    obstacle: holder === undefined ? obstacleOf(machine, state) : `it is node ${holder}`,
  };
}

/** The management controllers of nodes stay on the network, whatever becomes of the nodes. */
function neighbourCandidate({ mac, ip, hostname, vendor }: MaasNeighbour, holders: HoldersOf): Candidate {
  const holder = ip === null ? undefined : holders.byIpmiIp.get(ip);
  return {
    ...{ source: "network", systemId: "", hostname: hostname ?? "", state: "", statusName: "" },
    ...{ power: "unknown", serial: null, macs: [mac], ip, vendor },
    obstacle: holder === undefined ? "" : `it is the management controller of node ${holder}`,
  };
}

function obstacleOf({ isLocked, owner, errorDescription }: MaasMachine, state: ObservedMaasState): string {
  if (isLocked) return "it is locked in MAAS";
  switch (state) {
    case "New":
    case "Ready":
    case "Commissioning":
      return "";
    case "Allocated":
    case "Deploying":
    case "Deployed":
      return `${owner ?? "somebody"} uses it in MAAS; release it there first`;
    case "Broken":
      return `it is broken in MAAS${errorDescription === null ? "" : `: ${errorDescription}`}`;
    case "Failed":
    case "Failed deployment":
      return "its last operation in MAAS failed";
    default:
      return "MAAS works on it, or it is in a status that nothing can be built on";
  }
}
