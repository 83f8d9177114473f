import { isKeptWaiting } from "../../../lifecycles/rack/first-request.ts";
import { rackLifecycle } from "../../../lifecycles/rack/lifecycle.ts";
import { describeCounts } from "../../../lifecycles/rack/members.ts";
import { listRacksAtWork, listRacksFailedByThemselves } from "../../../store/rack/admission.ts";
import type { RackRecord } from "../../../store/rack/racks.ts";
import { listRuns } from "../../../store/run/runs.ts";
import { nowOf, type ServiceDeps } from "../../call/deps.ts";
import { findRack } from "../../rack/find-rack.ts";
import { explainByRun } from "../active-run.ts";
import { nameTrouble, troubleOf } from "../causes.ts";
import { findClaimsInTheWay } from "../claims-in-the-way.ts";
import {
  type ClaimLink,
  type Explanation,
  explainHolder,
  inOrder,
  type LastFailure,
  type NextCommand,
  say,
} from "../explanation.ts";
import { causeOfPass, findNextPass, type NextPass } from "../next-pass.ts";
import { findRackFailure, type RackFailure, rackRemedies, skippedFirmware, unreadyRemedies } from "./rack-remedies.ts";

const KIND = rackLifecycle.kind;

interface Seen {
  readonly rack: RackRecord;
  readonly pass: NextPass;
  readonly claims: readonly ClaimLink[];
  readonly skipped: Awaited<ReturnType<typeof skippedFirmware>>;
  /** Of a rack that may not begin yet: those in maintenance, or those on which it failed. */
  readonly before: readonly string[];
}

/** What a rack does or waits for, who is in its way, and what helps. */
export async function explainRack(deps: ServiceDeps, id: string): Promise<Explanation> {
  const rack = await findRack(deps.db, id, "id");
  const key = { kind: KIND, id: rack.id };
  const history = say(`history rack ${rack.id}`, "shows what happened to it, and who did what");
  const byRun = await explainByRun(deps, key, `rack ${rack.id} is ${phrase(rack)}`);
  if (byRun) {
    const terminate = say(
      `rack maintenance terminate ${rack.id}`,
      "stops the maintenance; a flash that has begun runs to its end",
    );
    const [run] = rack.state.run === undefined ? [] : await listRuns(deps.db, { ids: [rack.state.run] });
    const isEnding = run !== undefined && run.cancelRequestedAt !== null;
    return { ...byRun, nextCommands: inOrder([...byRun.nextCommands, ...(isEnding ? [] : [terminate]), history]) };
  }
  const isAtWork = rack.state.name !== "ready" && rack.state.name !== "error";
  const pass = await findNextPass(deps.db, key, { now: nowOf(deps), isAtWork });
  const claims = await findClaimsInTheWay(deps.db, deps.stores, key);
  const skipped = rack.state.name === "ready" ? await skippedFirmware(deps, rack) : undefined;
  const failure = rack.state.name === "error" ? await findRackFailure(deps, rack) : undefined;
  const before = isKeptWaiting(rack) ? await findRacksBefore(deps, rack) : [];
  const seen: Seen = { rack, pass, claims, skipped, before };
  return {
    headline: `rack ${rack.id} ${headlineOf(seen)}`,
    doing: isAtWork ? (rackLifecycle.states[rack.state.name as keyof typeof rackLifecycle.states]?.doc ?? "") : "",
    waitingFor: waitingFor(seen),
    since: rack.outcome?.since === undefined ? rack.stateSince : new Date(rack.outcome.since),
    claims,
    lastFailure: failure ? lastFailureOf(rack, failure) : null,
    nextCommands: inOrder([
      ...claims.flatMap(({ holder }) => explainHolder(deps.stores, holder)),
      ...(await commandsFor(deps, seen, failure)),
      history,
    ]),
  };
}

const phrase = ({ state }: RackRecord): string =>
  state.activity === undefined ? state.name : `${state.name}: ${state.activity} (${state.phase})`;

const lastFailureOf = ({ state, stateSince }: RackRecord, { failed: [first] }: RackFailure): LastFailure => ({
  at: stateSince,
  runId: first?.id ?? "",
  step: state.origin ?? "error",
  attempt: 1,
  message: state.cause ?? "",
});

function headlineOf({ rack, pass, claims, skipped }: Seen): string {
  const { state, outcome, maintenanceRequest, reprovisionRequest } = rack;
  const waits =
    claims.length > 0 ? `, and waits for ${claims.map(({ holder }) => `${holder.kind} ${holder.id}`).join(", ")}` : "";
  if (state.name === "error") return `is in error: ${state.cause ?? "unknown"}${waits}`;
  if (waits !== "") return `is ${state.name}${waits}`;
  if (pass.lastError !== null)
    return `is ${state.name}, but ${nameTrouble(troubleOf(pass.lastError, causeOfPass(pass, outcome)))}`;
  if (outcome !== null) return `is ${state.name}: ${outcome.reason}`;
  if (maintenanceRequest !== null || reprovisionRequest !== null) return `is ${state.name}, and about to be maintained`;
  if (skipped !== undefined) return `is ready; its last maintenance wrote no firmware, since ${skipped.why}`;
  return state.name === "ready" ? "is ready; nothing is wrong" : `is ${state.name}`;
}

/** Those that it waits for: racks of its kind in maintenance, or those that failed. */
async function findRacksBefore(
  { db }: ServiceDeps,
  { outcome, facts: { hasValidated } }: RackRecord,
): Promise<string[]> {
  if (outcome?.cause?.code === "maintenance_stopped") return listRacksFailedByThemselves(db);
  const atWork = await listRacksAtWork(db);
  return atWork.filter(({ was_ready }) => was_ready === hasValidated).map(({ id }) => id);
}

function waitingFor({ rack, claims, before }: Seen): string[] {
  if (before.length > 0) return [rack.outcome?.reason ?? "", ...before.map((id) => `rack ${id}`)];
  if (claims.length > 0) return claims.map((link) => `${link.holder.kind} ${link.holder.id}, which ${link.reason}`);
  return rack.outcome?.type === "waiting" ? [rack.outcome.reason] : [];
}

/** A rack that may not begin yet. */
function waitingCommands({ rack, before }: Seen): readonly NextCommand[] {
  const [first = ""] = before;
  if (rack.outcome?.cause?.code === "maintenance_stopped")
    return [
      say(`explain rack ${first}`, "explains why maintenance failed there"),
      say("rack maintenance resume", "lets maintenance begin by itself again, once you know why it failed"),
    ];
  return [say("rack list --state maintenance", "lists the racks in maintenance; this one follows by itself")];
}

async function commandsFor(
  deps: ServiceDeps,
  seen: Seen,
  failure: RackFailure | undefined,
): Promise<readonly NextCommand[]> {
  const { rack, claims, skipped } = seen;
  const { id, state, maintenanceRequest, profileId } = rack;
  const show = say(`rack show ${id}`, "lists its devices and the state of each");
  if (isKeptWaiting(rack)) return [...waitingCommands(seen), show];
  if (claims.length > 0 && maintenanceRequest !== null)
    return [say(`rack maintenance terminate ${id}`, "withdraws the pending request"), show];
  switch (state.name) {
    case "created":
      return [
        say(
          "site apply -f site.yaml --dry-run",
          `shows what the site lacks: ${profileId === null ? "a profile" : describeCounts(rack)}`,
        ),
        show,
      ];
    case "discovering":
      return [...unreadyRemedies(rack), show];
    case "deleting":
      return [say(`rack delete ${id} --detach`, "removes the rack from the devices that still name it"), show];
    case "error": {
      if (failure === undefined || state.origin === "component" || state.origin === "discovery")
        return [...unreadyRemedies(rack), show];
      const clear = say(`rack clear-error ${id}`, "returns the rack to ready without a retry");
      return [...(await rackRemedies(deps, rack, failure)), clear, show];
    }
    default:
      return [...(skipped?.commands ?? []), show];
  }
}
