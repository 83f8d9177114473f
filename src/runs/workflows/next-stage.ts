import { messageOf } from "../../kernel/errors.ts";
import type { NextStep, Visit } from "../model/next-step.ts";
import type { Plan } from "../model/plan/plan.ts";
import {
  type Choice,
  finish,
  goTo,
  mayEndAfter,
  type PastVisit,
  roundsOf,
  type Workflow,
  waysFrom,
} from "./workflow.ts";

/**
 * What is next in a run of a workflow. What it has begun comes first, the first of that before all others; then its own function
 * says where to go, within what the stages declare. Each stage has a bound of its own, so that no workflow is without end; what an
 * earlier attempt visited does not count towards it, since people asked for another one.
 */
export function nextInWorkflow(
  workflow: Workflow,
  { plan, visits, params }: { readonly plan: Plan; readonly visits: readonly Visit[]; readonly params: Params },
): NextStep {
  const fault = faultIn(workflow, visits);
  if (fault !== undefined) return { type: "misfit", index: placeOf(plan, fault.stage), why: fault.why };
  const open = visits.findIndex(({ state }) => state === "WAITING" || state === "RUNNING");
  const begun = visits[open];
  if (begun !== undefined) return { type: "run", index: placeOf(plan, begun.name), visit: open, round: begun.round };
  const last = visits.at(-1);
  try {
    return follow(workflow, plan, visits, choose(workflow, plan, visits, params));
  } catch (error) {
    const why = `workflow ${workflow.kind} does not know what comes next: ${messageOf(error)}`;
    return { type: "misfit", index: last === undefined ? 0 : placeOf(plan, last.name), why };
  }
}

type Params = Readonly<Record<string, string>>;

/** A stage that the plan lacks is a fault, and was found before. */
const placeOf = ({ steps }: Plan, name: string): number =>
  Math.max(
    0,
    steps.findIndex((step) => step.name === name),
  );

function faultIn(
  { kind, stages }: Workflow,
  visits: readonly Visit[],
): { readonly stage: string; readonly why: string } | undefined {
  const rounds = new Map<string, number>();
  for (const { name, round } of visits) {
    if (!stages.some((stage) => stage.name === name))
      return { stage: name, why: `a run of workflow ${kind} has the status of ${name}, which is none of its stages` };
    const expected = (rounds.get(name) ?? 0) + 1;
    if (round !== expected)
      return { stage: name, why: `a run of workflow ${kind} is in round ${round} of ${name} before round ${expected}` };
    rounds.set(name, round);
  }
  const open = visits.findIndex(({ state }) => state === "WAITING" || state === "RUNNING");
  const later = open < 0 ? undefined : visits.slice(open + 1).find(({ state }) => state === "RUNNING");
  const behind = visits[open];
  if (later === undefined || behind === undefined) return undefined;
  const why = `a run of workflow ${kind} has reached ${later.name} although ${behind.name} is ${behind.state}`;
  return { stage: behind.name, why };
}

const pastOf = ({ name, round, state, cause, verdict, carriedOver }: Visit): PastVisit => ({
  stage: name,
  round,
  state: state as PastVisit["state"], // those that have not ended were seen to before
  cause: cause?.code ?? null,
  verdict,
  carriedOver,
});

function choose(workflow: Workflow, plan: Plan, visits: readonly Visit[], params: Params): Choice {
  const payloads = Object.fromEntries(plan.steps.map(({ name, payload }) => [name, payload]));
  return workflow.next(visits.map(pastOf), { params, payloads, onwards: onwardsFrom(workflow, visits.at(-1)) });
}

function onwardsFrom({ stages }: Workflow, last: Visit | undefined): Choice {
  if (last?.state === "FAILED") return { type: "give_up" };
  const after = last === undefined ? stages[0] : stages[stages.findIndex(({ name }) => name === last.name) + 1];
  return after === undefined ? finish : goTo(after.name);
}

function follow(workflow: Workflow, plan: Plan, visits: readonly Visit[], choice: Choice): NextStep {
  const last = visits.at(-1);
  const index = last === undefined ? 0 : placeOf(plan, last.name);
  switch (choice.type) {
    case "finish": {
      if (last !== undefined && mayEndAfter(workflow, last.name)) return { type: "finished" };
      const why = `workflow ${workflow.kind} ends after ${last?.name ?? "nothing"}, where it may not`;
      return { type: "misfit", index, why };
    }
    case "give_up": {
      const { why, needsPerson, cause, stage } = choice;
      const more = {
        ...(why !== undefined && { why }),
        ...(needsPerson !== undefined && { needsPerson }),
        ...(cause && { cause }),
      };
      if (stage !== undefined) return { type: "failed", index: placeOf(plan, stage), ...more };
      return { type: "failed", index, ...(last !== undefined && { visit: visits.length - 1 }), ...more };
    }
    default:
      return enter(workflow, plan, visits, choice);
  }
}

function enter(
  workflow: Workflow,
  plan: Plan,
  visits: readonly Visit[],
  choice: Extract<Choice, { stage: string }>,
): NextStep {
  const { stage: name } = choice;
  const last = visits.at(-1);
  const ways =
    last === undefined ? workflow.stages.slice(0, 1).map((stage) => stage.name) : waysFrom(workflow, last.name);
  const stage = workflow.stages.find((each) => each.name === name);
  if (stage === undefined || !ways.includes(name)) {
    const why = `workflow ${workflow.kind} leads from ${last?.name ?? "its beginning"} to ${name}, which it does not declare`;
    return { type: "misfit", index: last === undefined ? 0 : placeOf(plan, last.name), why };
  }
  const ofStage = visits.filter((visit) => visit.name === name);
  const entered = ofStage.filter(({ carriedOver }) => !carriedOver).length;
  const index = placeOf(plan, name);
  if (entered >= roundsOf(stage)) {
    const times = entered === 1 ? "once" : `${entered} times`;
    const why = `was entered ${times}, which is as often as workflow ${workflow.kind} allows`;
    return { type: "failed", index, why, needsPerson: true };
  }
  const round = ofStage.length + 1;
  return choice.type === "go" ? { type: "run", index, round } : { type: "skip", index, round, why: choice.why };
}
