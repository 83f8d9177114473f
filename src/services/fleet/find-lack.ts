import { specOf } from "../../lifecycles/fleet-node/failure-classes.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { LACKS, type Lack, type LackNames } from "../../lifecycles/fleet-node/lacks.ts";
import { isSameAddress } from "../../runs/steps/fleet/onboarding/account-of-node.ts";
import { typeOfUserData } from "../../runs/steps/fleet/onboarding/user-data.ts";
import { FLEET_DECOMMISSION } from "../../runs/workflows/fleet/words.ts";
import { cloudInitTable } from "../../store/catalog/cloud-init.ts";
import { listOpenAllocations } from "../../store/fleet/allocations.ts";
import { listRoceAssignments } from "../../store/fleet/roce.ts";
import { fleetSites, getApiKey } from "../../store/fleet/sites.ts";
import { getMachineBmcCredentials } from "../../store/machine/credentials.ts";
import { listMachines } from "../../store/machine/machines.ts";
import type { ServiceDeps } from "../call/deps.ts";
import type { FleetJobView } from "./job-view.ts";

type Deps = Pick<ServiceDeps, "db" | "secrets">;
export type LackingNode = Pick<FleetNode, "id" | "site" | "hostname" | "machineId" | "ipmiIp">;
export interface LackingJob extends Pick<FleetJobView, "workflow" | "failureClass" | "finishedAt"> {
  /** The site bootstrap bundle that it was started with; null: none. */
  readonly bundle: string | null;
}

interface Asked {
  readonly deps: Deps;
  readonly node: LackingNode;
  readonly job: LackingJob;
}

/** What is lacked has these names; undefined: it is there. */
type Check = (asked: Asked) => Promise<Partial<LackNames> | undefined>;

export interface FoundLack {
  readonly lack: Lack;
  readonly command: string;
  readonly why: string;
}

/** The first thing that the class of the failure asks for and that is still not on record: until it is, the action on the job fails again. */
export async function findLack(deps: Deps, node: LackingNode, job: LackingJob): Promise<FoundLack | undefined> {
  if (job.failureClass === "") return undefined;
  for (const lack of specOf(job.failureClass).lacks ?? []) {
    const names = await CHECKS[lack]({ deps, node, job });
    if (names === undefined) continue;
    const all = { node: node.id, site: node.site, machine: node.machineId, address: "", bundle: "", allocation: "" };
    return { lack, command: LACKS[lack].command({ ...all, ...names }), why: LACKS[lack].what };
  }
  return undefined;
}

const HERE = {};

/** Each judges as the stage does that would fail again. */
const CHECKS: Readonly<Record<Lack, Check>> = {
  async enabled_site({ deps, node }) {
    const site = await siteOf(deps, node);
    return site?.isEnabled === false ? HERE : undefined;
  },
  async site_key({ deps, node }) {
    const site = await siteOf(deps, node);
    return site && (await getApiKey(deps.db, deps.secrets, site)) === undefined ? HERE : undefined;
  },
  async accepted_site_key({ deps, node, job }) {
    const site = await siteOf(deps, node);
    return site && !isSince(site.updatedAt, job) ? HERE : undefined;
  },
  async bmc_address({ deps, node }) {
    const [machine] = await listMachines(deps.db, { ids: [node.machineId] });
    const at = machine?.spec.bmc?.address;
    if (node.ipmiIp === null || at === undefined || isSameAddress(at, node.ipmiIp)) return undefined;
    return { address: node.ipmiIp };
  },
  async bmc_account({ deps, node }) {
    const machines = await listMachines(deps.db, { ids: [node.machineId] });
    const [account] = await getMachineBmcCredentials(deps.db, deps.secrets, machines);
    return account instanceof Error ? HERE : undefined;
  },
  async bundle({ deps, job }) {
    return job.bundle !== null && (await contentOf(deps, job.bundle)) === undefined
      ? { bundle: job.bundle }
      : undefined;
  },
  async usable_bundle({ deps, job }) {
    const content = job.bundle === null ? undefined : await contentOf(deps, job.bundle);
    return content !== undefined && typeOfUserData(content) === undefined ? { bundle: job.bundle ?? "" } : undefined;
  },
  async roce_assignment(asked) {
    return (await assignmentOf(asked)) === undefined ? HERE : undefined;
  },
  async other_roce_assignment(asked) {
    const assignment = await assignmentOf(asked);
    return assignment && !isSince(assignment.createdAt, asked.job) ? HERE : undefined;
  },
  async released_allocation({ deps, node }) {
    const stuck = (await listOpenAllocations(deps.db, node.id)).find(({ state }) => state.name === "release_failed");
    return stuck && { allocation: stuck.id };
  },
  async released_node({ deps, node }) {
    const used = (await listOpenAllocations(deps.db, node.id)).find(({ state }) => state.name === "active");
    return used && { allocation: used.id };
  },
  async ended_allocation({ deps, node }) {
    return (await listOpenAllocations(deps.db, node.id)).length > 0 ? HERE : undefined;
  },
  // An onboarding creates its machine again.
  async machine_to_deploy({ job }) {
    return job.workflow === FLEET_DECOMMISSION ? HERE : undefined;
  },
};

const siteOf = async ({ db }: Deps, { site }: LackingNode) => (await fleetSites.list(db, { names: [site] }))[0];

const contentOf = async ({ db }: Deps, bundle: string) =>
  (await cloudInitTable.list(db, { names: [bundle] }))[0]?.content;

const assignmentOf = async ({ deps, node: { site, hostname } }: Asked) =>
  (await listRoceAssignments(deps.db, { site, hostnames: [hostname] }))[0];

/** Given after the job failed for want of it. */
const isSince = (at: Date, { finishedAt }: LackingJob): boolean => finishedAt !== null && at > finishedAt;
