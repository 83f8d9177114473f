import type { MaasTarget } from "../../capabilities/fleet/maas.ts";
import { type MaasMachine, type ObservedMaasState, observedStateOf } from "../../capabilities/fleet/maas-machine.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { asCallerError, callOf, type MaasGate, maasOf, targetOfSite } from "./site-target.ts";
import { getSite } from "./sites.ts";

export interface Candidate {
  readonly systemId: string;
  readonly hostname: string;
  readonly state: ObservedMaasState;
  readonly statusName: string;
  readonly power: MaasMachine["power"];
  readonly serial: string | null;
  readonly macs: readonly string[];
  /** Why it cannot be onboarded as it is; empty: it can. */
  readonly obstacle: string;
}

/** What MAAS has that could be onboarded: in its own words, and what is in the way. One call to MAAS, however many there are. */
export async function listCandidates(
  deps: ServiceDeps,
  { site: name, all }: { readonly site: string; readonly all: boolean },
): Promise<readonly Candidate[]> {
  const site = await getSite(deps, name);
  const target = await targetOfSite(deps, site);
  const machines = await asCallerError("site", () => listOnce(deps, target));
  const candidates = machines.map(candidateOf).filter(({ obstacle }) => all || obstacle === "");
  return candidates.sort((one, other) => (one.hostname < other.hostname ? -1 : 1));
}

/** A list may be large: callers who ask for the same one at the same moment get one answer. */
const underWay = new WeakMap<MaasGate, Map<string, Promise<readonly MaasMachine[]>>>();

function listOnce(deps: ServiceDeps, target: MaasTarget): Promise<readonly MaasMachine[]> {
  const maas = maasOf(deps);
  const lists = underWay.get(maas) ?? new Map<string, Promise<readonly MaasMachine[]>>();
  underWay.set(maas, lists);
  const key = JSON.stringify(target);
  const list = lists.get(key) ?? maas.listMachines(target, {}, callOf("candidates")).finally(() => lists.delete(key));
  lists.set(key, list);
  return list;
}

function candidateOf(machine: MaasMachine): Candidate {
  const { systemId, hostname, statusName, power, serial, interfaces } = machine;
  const state = observedStateOf(machine);
  return {
    ...{ systemId, hostname, state, statusName, power, serial },
    macs: interfaces.flatMap(({ mac }) => mac ?? []),
    obstacle: obstacleOf(machine, state),
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
