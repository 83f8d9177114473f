import type { Condition } from "../../lifecycles/machine/conditions.ts";
import type { ServiceDeps } from "../deps.ts";
import { type MachineView, viewMachine } from "../machine-view.ts";
import { getRun } from "../runs.ts";
import { causeOf, nameCause } from "./causes.ts";
import { findClaimsInTheWay } from "./claims-in-the-way.ts";
import { type Explanation, explainHolder, inOrder, type NextCommand, say } from "./explanation.ts";
import { machineRemedies } from "./machine-remedies.ts";
import { explainRun } from "./run.ts";

/** Conditions of which these values are the bad news, the gravest first. */
const BAD: readonly (readonly [type: string, status: boolean, words: string])[] = [
  ["NeedsIntervention", true, "needs a person"],
  ["BMCReachable", false, "its BMC is not reached"],
  ["Reachable", false, "it is not reached over SSH"],
  ["Degraded", true, "it is degraded"],
];

export async function explainMachine(deps: ServiceDeps, id: string): Promise<Explanation> {
  const view = await viewMachine(deps, id);
  const { machine, phase } = view;
  const about = `machine ${machine.id} is ${phase}`;
  if (machine.activeRunId !== null) {
    const run = await explainRun(deps, machine.activeRunId);
    return { ...run, headline: `${about}: ${run.headline}` };
  }
  const [bad, ...others] = badNews(view);
  const claims = await findClaimsInTheWay(deps.db, deps.stores, { kind: "machine", id: machine.id });
  const failed = bad?.reason === "RunFailed" ? await explainLastRun(deps, view, "FAILED") : undefined;
  // What a cancel could not undo is the first thing to know before the machine is given back.
  const canceled =
    failed === undefined && leftSomething(view) ? await explainLastRun(deps, view, "CANCELED") : undefined;
  const trouble = machine.outcome?.reason ?? bad?.message ?? "";
  // A BMC that is silent alone is another matter than a machine of which nothing answers any more.
  const also = others.length === 0 ? "" : `; also, ${others.map(wordsOf).join(", and ")}`;
  const why = bad === undefined ? "" : `, and ${wordsOf(bad)}${trouble === "" ? "" : `: ${nameCause(trouble)}`}${also}`;
  const holder = view.claim?.holder;
  return {
    headline: failed
      ? `${about}, and needs a person: ${failed.headline}`
      : canceled
        ? `${about}: ${canceled.headline}${why}`
        : `${about}${why || restingWords(view)}`,
    doing: holder ? `${holder.kind} ${holder.id} works on it` : "",
    waitingFor:
      bad?.type === "NeedsIntervention" ? ["a person who sees to it"] : view.waitingFor === "" ? [] : [view.waitingFor],
    since: bad?.lastTransition ?? machine.stateSince,
    claims,
    lastFailure: failed?.lastFailure ?? null,
    nextCommands: inOrder([
      ...((failed ?? canceled)?.nextCommands ?? []),
      ...machineRemedies(causeOf(trouble), machine.id),
      ...explainHolder(deps.stores, holder),
      ...commandsFor(view, bad),
    ]),
  };
}

/** A machine that was taken out of service is switched off, so that nobody expects its system to answer. */
const isExpected = ({ machine, phase }: MachineView, type: string): boolean =>
  type === "Reachable" && (phase === "RETIRED" || (phase === "RMA" && machine.facts.powerState === "off"));

const badNews = (view: MachineView): Condition[] =>
  BAD.filter(([type]) => !isExpected(view, type)).flatMap(([type, status]) =>
    view.machine.conditions.filter((one) => one.type === type && one.status === status),
  );

const wordsOf = ({ type }: Condition): string => BAD.find(([each]) => each === type)?.[2] ?? "";

function restingWords({ machine, phase, claim }: MachineView): string {
  if (claim) return `, and ${claim.holder.kind} ${claim.holder.id} works on it`;
  return machine.facts.residue.length > 0
    ? `, and a run left something behind: ${machine.facts.residue.join("; ")}`
    : phase === "RMA" && machine.facts.powerState === "off"
      ? ", switched off to be returned or replaced"
      : "; nothing is wrong";
}

const leftSomething = ({ machine, phase }: MachineView): boolean =>
  phase === "MAINTENANCE" && machine.facts.residue.length > 0;

/** The run that left it so; undefined when that is no longer the last one, or ended otherwise. */
async function explainLastRun(
  deps: ServiceDeps,
  { machine }: MachineView,
  ended: "FAILED" | "CANCELED",
): Promise<Explanation | undefined> {
  if (machine.lastRunId === null) return undefined;
  const { phase } = await getRun(deps, machine.lastRunId);
  return phase === ended ? explainRun(deps, machine.lastRunId) : undefined;
}

/** One machine that is silent is a machine; all of a rack are a switch, or its power. */
const neighbours = ({ machine: { spec } }: MachineView, bad: Condition | undefined): NextCommand[] =>
  bad?.type.endsWith("Reachable") && spec.rack !== null && /^[\w.-]+$/.test(spec.rack)
    ? [say(`machine list --filter rack=${spec.rack}`, "shows whether others of its rack are not reached either")]
    : [];

function commandsFor(view: MachineView, bad: Condition | undefined): NextCommand[] {
  const {
    machine: { id },
    phase,
  } = view;
  const show = say(`machine show ${id}`, "shows all that is known of it");
  const history = say(`machine history ${id}`, "shows what happened to it, and who did what");
  const isSeenTo = bad?.type === "NeedsIntervention";
  switch (phase) {
    case "FACTORY_READY":
      return [say(`machine accept ${id}`, "makes it ours to manage"), show];
    case "MAINTENANCE":
      return [
        say(
          `machine exit-maintenance ${id}${isSeenTo ? " --acknowledge --comment <text>" : ""}`,
          isSeenTo ? "says that it was seen to, and gives it back" : "gives it back",
        ),
        show,
        history,
      ];
    case "RMA":
      return [say(`machine return ${id}`, "says that it is back, repaired or replaced"), show];
    case "RETIRED":
      return [history];
    default:
      return [
        ...(bad ? [] : [say(`run list --machine ${id}`, "lists what was done with it")]),
        show,
        ...neighbours(view, bad),
        history,
      ];
  }
}
