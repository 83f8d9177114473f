import { AppError } from "../../../kernel/errors.ts";
import type { Duration } from "../../../kernel/time/duration.ts";
import type { FleetPolicy } from "../../../lifecycles/fleet-node/policy.ts";
import { longestOf, type PreviewedStage, previewOf } from "../../../runs/workflows/fleet/fleet-onboarding.ts";
import { planOfJob } from "../../../runs/workflows/fleet/plan-of-job.ts";
import { FLEET_ONBOARDING } from "../../../runs/workflows/fleet/words.ts";
import { type FleetSite, fleetSites } from "../../../store/fleet/sites.ts";
import { getMachineBmcCredentials } from "../../../store/machine/credentials.ts";
import { listMachines, type MachineRecord } from "../../../store/machine/machines.ts";
import type { Caller } from "../../call/caller.ts";
import type { RunDeps } from "../../run/deps.ts";
import { findHolders } from "../../run/preview.ts";
import { workflowOf } from "../../run/workflow-starts.ts";
import { checkServer } from "../bootstrap.ts";
import { checkSite, policyOf } from "../jobs.ts";
import { type CheckedIdentity, checkIdentity, type NodeAsked } from "../node-input.ts";
import { checkGiver, checkMachineOf, findMachine, specOfNode } from "../node-machine.ts";
import { refuseTwin } from "../node-twins.ts";
import { noPart, notAsked, type PreviewedInMaas, previewInMaas } from "./preview-in-maas.ts";

/** What the call would be refused with, in its words. */
export interface PreviewedObstacle {
  readonly message: string;
  /** Of the request; empty: none alone. */
  readonly field: string;
  /** The command that helps first; empty: none. */
  readonly next: string;
}

export interface OnboardingPreview {
  /** The machine of the inventory that the node would be; null: none so far. */
  readonly machineId: string | null;
  /** There is none, and one would be registered. */
  readonly registersMachine: boolean;
  /** The call is refused with the first of them. */
  readonly obstacles: readonly PreviewedObstacle[];
  /** Empty where the profile is not known. */
  readonly stages: readonly PreviewedStage[];
  readonly maas: PreviewedInMaas;
  /** Null where the profile is not known. */
  readonly atMost: Duration | null;
  /** What is not in the way of the call, and what the job would wait for or fail of. */
  readonly notes: readonly string[];
}

/**
 * What `onboardNode` would do with the same input, without doing it: it only reads, here and in MAAS. Input that is wrong whatever the moment is
 * refused; what is in the way is listed.
 */
export async function previewOnboarding(
  deps: RunDeps,
  caller: Caller,
  input: Omit<NodeAsked, "bmcPassword">,
): Promise<OnboardingPreview> {
  // Any password stands for the one that the call would be given.
  const asked = checkIdentity({ ...input, bmcPassword: (input.bmcUsername ?? "") === "" ? "" : "any" });
  const { site, policy, machine, isFree, obstacles } = await comeThrough(deps, caller, asked);
  const stages = policy === undefined ? [] : stagesOf(deps, asked, policy);
  return {
    machineId: machine?.id ?? null,
    registersMachine: isFree,
    obstacles,
    stages,
    maas: await lookInMaas(deps, { asked, site, policy, machine }),
    atMost: policy === undefined ? null : longestOf(stages),
    notes: await notesOn(deps, asked, machine),
  };
}

/** The checks of the call, one after the other; it ends at the first refusal, and a preview goes on. */
async function comeThrough(deps: RunDeps, caller: Caller, asked: CheckedIdentity) {
  const { db } = deps;
  const obstacles: PreviewedObstacle[] = [];
  const tried = async <T>(check: () => T | Promise<T>): Promise<{ readonly is: T } | undefined> => {
    try {
      return { is: await check() };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const { message, detail } = error;
      if (!obstacles.some((known) => known.message === message))
        obstacles.push({ message, field: detail.field ?? "", next: detail.next ?? "" });
      return undefined;
    }
  };
  await tried(() => checkGiver(caller, asked));
  const [site] = await fleetSites.list(db, { names: [asked.site] });
  await tried(() => checkSite(site, asked.site));
  const policy = (await tried(() => policyOf(db, asked)))?.is;
  await tried(() => refuseTwin(db, { ...asked, machineId: null }));
  const found = await tried(() => findMachine(db, asked));
  const machineId = found?.is;
  const spec = found && machineId === undefined && (await tried(() => specOfNode(deps, asked)));
  if (machineId !== undefined) {
    await tried(() => checkMachineOf(db, asked, machineId));
    await tried(() => refuseTwin(db, { ...asked, machineId }));
  }
  if (asked.mode === "manual") await tried(() => checkServer(deps));
  const [machine] = machineId === undefined ? [] : await listMachines(db, { ids: [machineId] });
  return { site, policy, machine, isFree: Boolean(spec), obstacles };
}

function stagesOf(deps: RunDeps, node: CheckedIdentity, policy: FleetPolicy): readonly PreviewedStage[] {
  const workflow = workflowOf(deps, { workflow: FLEET_ONBOARDING });
  return previewOf(planOfJob({ workflow, node, policy }, deps.steps));
}

interface Found {
  readonly asked: CheckedIdentity;
  readonly site: FleetSite | undefined;
  readonly policy: FleetPolicy | undefined;
  readonly machine: MachineRecord | undefined;
}

async function lookInMaas(deps: RunDeps, { asked, site, policy, machine }: Found): Promise<PreviewedInMaas> {
  if (asked.mode === "manual") return noPart;
  // A disabled site is not called at all.
  if (site === undefined || !site.isEnabled || policy === undefined) return notAsked;
  const { serial = null, macs = [], bmc = null } = machine?.spec ?? {};
  const known = { serial, macs, bmcAddress: bmc?.address ?? null };
  return previewInMaas(deps, { node: asked, site, policy, known });
}

async function notesOn(
  { db, secrets }: RunDeps,
  { mode, ipmiIp, account: given }: CheckedIdentity,
  machine: MachineRecord | undefined,
): Promise<readonly string[]> {
  const holders = machine === undefined ? [] : await findHolders(db, machine);
  if (mode === "manual")
    return [...holders, "a manual node: its job starts once its owner has run the command that onboarding it prints"];
  if (given !== null) return holders;
  const [account] = machine === undefined ? [] : await getMachineBmcCredentials(db, secrets, [machine]);
  if (account !== undefined && !(account instanceof Error)) return holders;
  const id = machine?.id ?? "m-…";
  return [
    ...holders,
    `no account for the BMC ${ipmiIp} is on record: the job would stop at resolve_power_credentials (credentials_missing) until millwright machine set-credentials ${id} gives it`,
  ];
}
