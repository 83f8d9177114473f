import type { Capability } from "../../capabilities/provider.ts";
import { AppError } from "../../kernel/errors.ts";
import { parseMachineId } from "../../kernel/ids.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { type Machine, needsEndpoints } from "../../lifecycles/machine/machine.ts";
import { paramsOf } from "../../runs/model/plan/params.ts";
import type { Plan, Step } from "../../runs/model/plan/plan.ts";
import { resolvePlan } from "../../runs/model/plan/resolve-plan.ts";
import { chooseRunType, type RunType } from "../../runs/model/plan/run-types.ts";
import { signInsOf } from "../../runs/model/sign-ins.ts";
import { capabilitiesFor } from "../../runs/model/step.ts";
import {
  ENDPOINTS,
  type Endpoint,
  hasNoEndpoint,
  IMAGE_NEEDS,
  provesWithoutSsh,
  REACHED_AT,
} from "../../runs/model/targets.ts";
import { machineTarget } from "../../runs/targets/machine.ts";
import type { RunTarget } from "../../runs/targets/run-target.ts";
import { type ImageRow, imageTable } from "../../store/catalog/images.ts";
import type { LiveNode } from "../../store/fleet/nodes.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import type { RunDeps } from "./deps.ts";
import type { StartRun } from "./starts.ts";

/** What StartRun and PreviewRun find in the same order, so that a preview refuses exactly what a start would. */

export function checkMachineId(text: string): string {
  if (text === "") throw new AppError("invalid_argument", "machine_id: is required", { field: "machine_id" });
  return parseMachineId(text, "machine_id");
}

/** An id that was never filled in is a slip of the caller's, and no run that is gone. */
export function checkRunId(text: string): string {
  if (text !== "") return text;
  throw new AppError("invalid_argument", "run_id: is required", { field: "run_id", next: "millwright run list" });
}

const PARAM_LIMITS = { entries: 64, nameLength: 128, valueLength: 16_384 } as const;

/** They are frozen into the run, and travel with everything that is told of it. */
function checkParams(params: Readonly<Record<string, string>>): void {
  const refuse = (field: string, why: string) => new AppError("invalid_argument", `${field}: ${why}`, { field });
  const entries = Object.entries(params);
  const { entries: most, nameLength, valueLength } = PARAM_LIMITS;
  if (entries.length > most) throw refuse("params", `must have at most ${most} entries, got ${entries.length}`);
  for (const [name, value] of entries) {
    if (name.length > nameLength) throw refuse("params", `names must have at most ${nameLength} characters`);
    if (value.length > valueLength) throw refuse(`params.${name}`, `must have at most ${valueLength} characters`);
  }
}

/** One that nobody takes is a typing error, or meant for another plan: the run would do something else than was asked for. */
function checkParamsTaken(plan: Plan, params: Readonly<Record<string, string>>): void {
  const taken = paramsOf(plan);
  const stray = Object.keys(params).find((name) => !taken.includes(name));
  if (stray === undefined) return;
  const theirs = taken.length === 0 ? "they take none" : `they take ${taken.join(", ")}`;
  throw new AppError("invalid_argument", `params.${stray}: no step of plan ${plan.planId} takes it; ${theirs}`, {
    field: `params.${stray}`,
    next: `millwright plan show ${plan.planId}`,
  });
}

const LONGEST_TICKET = 256;

/** It stands in one line of logs, messages and evidence. */
function checkTicket(ticket: string): void {
  if (ticket.length <= LONGEST_TICKET && isPrintable(ticket)) return;
  const field = "params.ticket";
  throw new AppError("invalid_argument", `${field}: must have at most ${LONGEST_TICKET} printable characters`, {
    field,
  });
}

export interface ChosenRun {
  readonly type: RunType | "";
  readonly machine: Machine;
  /** As it would be frozen into the run. */
  readonly plan: Plan;
  /** As its author wrote it: which cluster is meant may be open. */
  readonly written: Plan;
}

/** Where a run to be is looked up. Who starts one finds the plan, and the machine, under its lock. */
export interface RunSources extends Pick<RunDeps, "steps"> {
  findPlan(id: string): Promise<Plan>;
  findMachine(id: string): Promise<Machine | undefined>;
  /** The live fleet node that the machine is. */
  findFleetNode(machineId: string): Promise<LiveNode | undefined>;
}

/** Type, then plan, then machine: the first that is wrong is the answer. */
export async function chooseRun(
  input: Omit<StartRun, "requestId"> & { readonly plan?: Plan },
  sources: RunSources,
): Promise<ChosenRun> {
  const { type, planId } = chooseRunType(input);
  checkParams(input.params);
  const plan = input.plan ?? (await sources.findPlan(planId));
  const machine = await sources.findMachine(input.machineId);
  if (!machine)
    throw new AppError("not_found", `machine ${input.machineId} does not exist`, { next: "millwright machine list" });
  checkParamsTaken(plan, input.params);
  checkTicket(input.params.ticket ?? "");
  const resolved = resolvePlan(plan, {
    kind: machineTarget,
    target: machine,
    params: input.params,
    steps: sources.steps,
  });
  await checkFleetNode(sources, { machineId: machine.id, plan: resolved });
  return { type, machine, plan: resolved, written: plan };
}

/** What would take the system of a fleet node, or the machine itself, from under it. */
const replacesNode = ({ steps }: Plan, kinds: RunSources["steps"]): string | undefined =>
  steps.find(({ kind }) => kind === "join" || kind === "rma" || kinds.get(kind)?.replacesSystem === true)?.name;

/** The machine of a fleet node keeps its system, and stays where it is, for as long as there is the node. */
export async function checkFleetNode(
  { steps: kinds, findFleetNode }: Pick<RunSources, "steps" | "findFleetNode">,
  { machineId, plan }: { readonly machineId: string; readonly plan: Plan },
): Promise<void> {
  const step = replacesNode(plan, kinds);
  const node = step === undefined ? undefined : await findFleetNode(machineId);
  if (!node) return;
  throw new AppError(
    "failed_precondition",
    `machine ${machineId} is fleet node ${node.hostname} (${node.state}): step ${step} of ${plan.planId} would take it from the fleet; decommission the node instead`,
    { field: "machine_id", next: `millwright fleet decommission ${node.id} --mode reimage` },
  );
}

/** Why the machine cannot have a run at this moment; what StartRun would answer is the first. */
export function findMomentConflicts(machine: Machine): AppError[] {
  const { id, activeRunId } = machine;
  const target = { kind: machineTarget.kind, id };
  return [
    ...(machineTarget.whyNoRun?.(machine) ?? []),
    ...(activeRunId === null ? [] : [hasActiveRun(target, activeRunId)]),
  ];
}

export const hasActiveRun = ({ kind, id }: RunTarget, runId: string): AppError =>
  new AppError("failed_precondition", `${kind} ${id} has an active run, ${runId}: wait for it or cancel it`, {
    next: `millwright run show ${runId}`,
  });

export function checkMoment(machine: Machine): void {
  const [conflict] = findMomentConflicts(machine);
  if (conflict) throw conflict;
}

export type ImageMeans = Pick<ImageRow, "name" | "kind" | "location" | "successProof" | "seed" | "seedOn">;
/** How those images that there are get onto a machine and prove themselves, by their names. */
export type MeansOfImages = (names: readonly string[]) => Promise<ReadonlyMap<string, ImageMeans>>;

export const imagesIn =
  (db: Queryable): MeansOfImages =>
  async (names) =>
    new Map((await imageTable.list(db, { names })).map((image) => [image.name, image]));

/** For runs that are about to be started: what is found stays as it is until they are on record. */
export const heldImagesIn =
  (tx: Transaction): MeansOfImages =>
  async (names) =>
    new Map((await imageTable.hold(tx, names)).map((image) => [image.name, image]));

/** All without which a step is impossible. */
export interface StepNeeds {
  /** Also for what the images that it names are installed with; a kind that the server does not know counts as one that nobody has. */
  readonly capabilities: readonly (Capability | string)[];
  readonly endpoints: readonly Endpoint[];
  /** Where credentials must be on record. */
  readonly signIns: readonly Endpoint[];
  /** What it installs, as far as that is there. */
  readonly images: readonly ImageMeans[];
}

export async function findNeeds(
  meansOf: MeansOfImages,
  { steps, capabilitiesOf }: Pick<RunDeps, "steps" | "capabilitiesOf">,
  { machine: { spec }, plan }: Pick<ChosenRun, "machine" | "plan">,
): Promise<ReadonlyMap<Step, StepNeeds>> {
  const can = capabilitiesOf(spec);
  const imagesOf = ({ kind, payload }: Step) =>
    (steps.get(kind)?.refersTo(payload) ?? []).filter((reference) => reference.kind === "image").map(({ ref }) => ref);
  const names = plan.steps.flatMap(imagesOf);
  const means = names.length === 0 ? new Map<string, ImageMeans>() : await meansOf(names);
  return new Map(
    plan.steps.map((step): readonly [Step, StepNeeds] => {
      const kind = steps.get(step.kind);
      if (!kind) return [step, { capabilities: [step.kind], endpoints: [], signIns: [], images: [] }];
      const images = imagesOf(step).flatMap((ref) => means.get(ref) ?? []);
      const forImages = imagesOf(step).map((ref) => IMAGE_NEEDS[means.get(ref)?.kind ?? "iso"]);
      const capabilities = [...new Set([...forImages, ...capabilitiesFor(kind, step.payload)])];
      const endpoints = endpointsFor(capabilities, images);
      const signIns = signInsOf(kind, { capabilities, endpoints }, { spec, can });
      return [step, { capabilities, endpoints, signIns, images }];
    }),
  );
}

function endpointsFor(capabilities: readonly Capability[], images: readonly ImageMeans[]): Endpoint[] {
  const goesWithoutSsh = images.some(({ kind, successProof: proof }) => provesWithoutSsh({ kind, proof }));
  const reached = new Set(capabilities.map((capability) => REACHED_AT[capability]));
  return ENDPOINTS.filter((one) => reached.has(one) && !(one === "ssh" && goesWithoutSsh));
}

/** Where the machine would have to be reached, and nobody has said where that is: a run would find out only in its middle. */
export function findMissingEndpoints({ id, spec }: Machine, needs: ReadonlyMap<Step, StepNeeds>): AppError[] {
  if (!needsEndpoints(spec)) return [];
  return ENDPOINTS.filter((endpoint) => spec[endpoint] === null).flatMap((endpoint) => {
    const step = [...needs].find(([, { endpoints }]) => endpoints.includes(endpoint))?.[0];
    if (step === undefined) return [];
    return new AppError("failed_precondition", `${hasNoEndpoint({ id }, endpoint)}, which step ${step.name} needs`, {
      field: "machine_id",
      next: `millwright machine update ${id} --${endpoint}-endpoint <host>`,
    });
  });
}

/**
 * Its provider can do what each step needs, and it is on record where the machine is reached for it. Returns what they need: as whom
 * is asked for many runs at once (`findCredentials`).
 */
export async function checkMeans(
  meansOf: MeansOfImages,
  deps: RunDeps,
  run: Pick<ChosenRun, "machine" | "plan">,
): Promise<ReadonlyMap<Step, StepNeeds>> {
  const { machine } = run;
  const can: ReadonlySet<string> = deps.capabilitiesOf(machine.spec);
  const needs = await findNeeds(meansOf, deps, run);
  for (const [step, { capabilities }] of needs) {
    const missing = capabilities.filter((capability) => !can.has(capability));
    if (missing.length > 0) {
      throw new AppError(
        "unsupported",
        missing.includes("playbooks")
          ? `step ${step.name} runs a playbook, and ansible-playbook is not installed on this server; install it (Debian: ansible-core), and start the server again`
          : `step ${step.name} needs ${missing.join(", ")}, which provider ${machine.spec.provider} cannot do: choose another plan`,
      );
    }
  }
  const [conflict] = findMissingEndpoints(machine, needs);
  if (conflict) throw conflict;
  return needs;
}
