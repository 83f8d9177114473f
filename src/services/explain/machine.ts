import { NOT_PROVEN } from "../../lifecycles/machine/observation.ts";
import { listHistory } from "../../store/lifecycle/journal.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { type MachineView, viewMachine } from "../machine/view.ts";
import { getRun } from "../run/read.ts";
import { explainByRun } from "./active-run.ts";
import { findClaimsInTheWay } from "./claims-in-the-way.ts";
import { type Explanation, explainHolder, inOrder, type NextCommand, say } from "./explanation.ts";
import { type MachineNote, notesOf, resetByForce, seemsHung } from "./machine-notes.ts";
import { machineRemedies } from "./machine-remedies.ts";
import { failedUpgradeNote } from "./rack/host-reprovision.ts";
import { explainRun } from "./run.ts";
import { describeWatching } from "./watching.ts";

export async function explainMachine(deps: ServiceDeps, id: string): Promise<Explanation> {
  const view = await viewMachine(deps, id);
  const { machine, phase } = view;
  const about = `machine ${machine.id} is ${phase}`;
  if (machine.activeRunId !== null) {
    const run = await explainRun(deps, machine.activeRunId);
    return { ...run, headline: `${about}: ${run.headline}` };
  }
  // A part of the work on something greater takes no run slot.
  const key = { kind: "machine", id: machine.id };
  const part = await explainByRun(deps, key, about);
  if (part) return part;
  const known = [...notesOf(view, nowOf(deps)), ...(await failedUpgradeNote(deps, machine.id))];
  const claims = await findClaimsInTheWay(deps.db, deps.stores, key);
  const failed = known[0]?.reason === "RunFailed" ? await explainLastRun(deps, view, "FAILED") : undefined;
  // What a cancel could not undo is the first thing to know before the machine returns to service.
  const canceled = failed === undefined ? await explainLastRun(deps, view, "CANCELED") : undefined;
  // The run itself tells of the installation that it left.
  const notes = canceled ? known.filter(({ reason }) => reason !== NOT_PROVEN) : known;
  const [first, ...others] = notes;
  const needsPerson = first?.type === "NeedsIntervention";
  // A BMC that is silent alone is another matter than a machine of which nothing answers any more.
  const also = others.length === 0 ? "" : `; also, ${others.map(({ words }) => words).join(", and ")}`;
  const because = first === undefined || first.why === "" ? "" : `: ${first.why}`;
  const why = first === undefined ? "" : `, and ${first.words}${because}${also}`;
  const holder = view.claim?.holder;
  return {
    headline: failed
      ? `${about}, and needs a person: ${failed.headline}`
      : canceled
        ? `${about}: ${canceled.headline}${why}`
        : `${about}${why || restingWords(view)}`,
    doing: holder ? `${holder.kind} ${holder.id} works on it` : await describeWatching(deps.db, key),
    waitingFor: needsPerson ? ["a person who fixes the cause"] : view.waitingFor === "" ? [] : [view.waitingFor],
    since: first?.since ?? machine.stateSince,
    claims,
    lastFailure: failed?.lastFailure ?? null,
    nextCommands: inOrder([
      ...((failed ?? canceled)?.nextCommands ?? []),
      ...machineRemedies(first?.trouble.cause ?? null, machine.id),
      ...explainHolder(deps.stores, holder),
      ...notes.flatMap(({ commands }) => commands),
      ...commandsFor(view, first),
    ]),
  };
}

function restingWords({ machine, phase, claim }: MachineView): string {
  if (claim) return `, and ${claim.holder.kind} ${claim.holder.id} works on it`;
  return machine.facts.residue.length > 0
    ? `, and a run left something behind: ${machine.facts.residue.join("; ")}`
    : phase === "RMA" && machine.facts.powerState === "off"
      ? ", switched off to be returned or replaced"
      : "; nothing is wrong";
}

/** The run that left it so; undefined when that is no longer the last one, ended otherwise, or is not why the machine is as it is. */
async function explainLastRun(
  deps: ServiceDeps,
  view: MachineView,
  ended: "FAILED" | "CANCELED",
): Promise<Explanation | undefined> {
  const { lastRunId } = view.machine;
  if (lastRunId === null) return undefined;
  if (ended === "CANCELED" && !(await isLeftBy(deps, view, lastRunId))) return undefined;
  const { phase } = await getRun(deps, lastRunId);
  return phase === ended ? explainRun(deps, lastRunId) : undefined;
}

/** Whether it was this run that left it in MAINTENANCE, and nobody has given it back since. */
async function isLeftBy(deps: ServiceDeps, { machine, phase }: MachineView, runId: string): Promise<boolean> {
  if (phase !== "MAINTENANCE") return false;
  if (machine.facts.residue.length > 0) return true;
  const key = { kind: "machine", id: machine.id };
  const asked = { key, types: ["transition"], newestFirst: true, after: null, limit: 1 };
  const [last] = await listHistory(deps.db, asked);
  return last?.to === phase && last.actor === `run ${runId}`;
}

/** One machine that is silent is a machine; all of a rack are a switch, or its power. */
const neighbours = ({ machine: { spec } }: MachineView, bad: MachineNote | undefined): NextCommand[] =>
  bad?.type?.endsWith("Reachable") && spec.rack !== null && /^[\w.-]+$/.test(spec.rack)
    ? [say(`machine list --filter rack=${spec.rack}`, "shows whether others of its rack are not reached either")]
    : [];

function commandsFor(view: MachineView, bad: MachineNote | undefined): NextCommand[] {
  const {
    machine: { id },
    phase,
  } = view;
  const show = say(`machine show ${id}`, "shows all that is known of it");
  const history = say(`machine history ${id}`, "shows what happened to it, and who did what");
  const reset = seemsHung(view) === true ? [resetByForce(id)] : [];
  const isSeenTo = bad?.type === "NeedsIntervention";
  switch (phase) {
    case "FACTORY_READY":
      return [say(`machine accept ${id}`, "makes it ours to manage"), show];
    case "MAINTENANCE":
      return [
        say(
          `machine exit-maintenance ${id}${isSeenTo ? " --acknowledge --comment <text>" : ""}`,
          isSeenTo ? "records that the cause was fixed, and returns it to service" : "returns it to service",
        ),
        show,
        ...reset,
        history,
      ];
    case "RMA":
      return [say(`machine return ${id}`, "records that it is back, repaired or replaced"), show];
    case "RETIRED":
      return [history];
    default:
      return [
        ...(bad ? [] : [say(`run list --machine ${id}`, "lists what was done with it")]),
        show,
        ...neighbours(view, bad),
        ...reset,
        history,
      ];
  }
}
