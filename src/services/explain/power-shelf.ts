import type { Cause, CauseCode } from "../../kernel/causes.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import { minutes, seconds } from "../../kernel/time/duration.ts";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import type { MaintenanceOperation } from "../../lifecycles/power-shelf/power-shelf.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { type PowerShelfRecord, type PowerShelfView, viewPowerShelf } from "../power-shelf/view.ts";
import { explainByRun } from "./active-run.ts";
import { isWrongNow, NO_TROUBLE, nameTrouble, type Trouble, troubleOf } from "./causes.ts";
import { findClaimsInTheWay } from "./claims-in-the-way.ts";
import {
  type ClaimLink,
  type Explanation,
  explainHolder,
  inOrder,
  type LastFailure,
  type NextCommand,
  say,
} from "./explanation.ts";
import { causeOfPass, findNextPass, iso, type NextPass } from "./next-pass.ts";
import { describeWatching } from "./watching.ts";

const KIND = powerShelfLifecycle.kind;
/** As long as an accepted command is given to show before it is sent again. */
const SHOWS_WITHIN = seconds(20);

interface Seen {
  readonly view: PowerShelfView;
  readonly shelf: PowerShelfRecord;
  readonly pass: NextPass;
  readonly claims: readonly ClaimLink[];
  /** What is wrong at this moment; its message is empty when nothing is. */
  readonly trouble: Trouble;
}

export async function explainPowerShelf(deps: ServiceDeps, id: string): Promise<Explanation> {
  const view = await viewPowerShelf(deps, id);
  const { shelf } = view;
  const key = { kind: KIND, id: shelf.id };
  const byRun = await explainByRun(deps, key, `power shelf ${shelf.id} ${phrase(shelf)}`);
  if (byRun) return byRun;
  const now = nowOf(deps);
  const pass = await findNextPass(deps.db, key, { now, isAtWork: !isResting(shelf) });
  const claims = await findClaimsInTheWay(deps.db, deps.stores, key);
  const seen: Seen = { view, shelf, pass, claims, trouble: troubleNow(view, pass, now) };
  return {
    headline: `power shelf ${shelf.id} ${headlineOf(seen)}`,
    doing: doingOf(shelf) || (await describeWatching(deps.db, key)),
    waitingFor: waitingFor(seen),
    since: view.failingSince ?? outcomeSince(shelf) ?? shelf.stateSince,
    claims,
    lastFailure: lastFailureOf(seen),
    nextCommands: inOrder([...explainHolder(deps.stores, claims[0]?.holder), ...commandsFor(seen)]),
  };
}

const isResting = ({ state: { name } }: PowerShelfRecord): boolean => name === "ready" || name === "error";
const outcomeSince = ({ outcome }: PowerShelfRecord): Date | undefined =>
  outcome?.since === undefined ? undefined : new Date(outcome.since);

/** It was told long enough ago, and does not even begin. */
const isIdle = ({ state, facts: { commandedAt }, outcome }: PowerShelfRecord, now: Date): boolean =>
  state.name === "maintenance" &&
  commandedAt !== null &&
  now.getTime() - Date.parse(commandedAt.at) > SHOWS_WITHIN &&
  outcome?.cause?.code === "no_effect" &&
  ["on", "off"].includes(outcome.cause.facts?.progress ?? "");

function troubleNow({ shelf, lastPass, reason }: PowerShelfView, pass: NextPass, now: Date): Trouble {
  const { outcome } = shelf;
  if (lastPass === "failed") return troubleOf(reason || (pass.lastError ?? ""), causeOfPass(pass, outcome));
  const isWrong = isWrongNow(outcome?.cause) || isIdle(shelf, now);
  return lastPass === "waiting" && isWrong ? troubleOf(reason, outcome?.cause) : NO_TROUBLE;
}

/** Why its last operation failed; what a state of an older version carries is told in its own words. */
const troubleOfError = ({ state: { cause, failure } }: PowerShelfRecord): Trouble =>
  troubleOf(cause ?? "", parseCause(failure));

function headlineOf({ view, shelf, pass, claims, trouble }: Seen): string {
  const [first] = claims;
  const { name } = shelf.state;
  if (trouble.message !== "") return `${phrase(shelf)}, but ${nameTrouble(trouble)}`;
  if (first) return `${phrase(shelf)}, and waits for ${first.holder.kind} ${first.holder.id}`;
  if (pass.isStranded) return `${phrase(shelf)}, and waits for ${pass.waits}`;
  if (name === "error")
    return `is in error: ${lastOperation(shelf)} failed because ${nameTrouble(troubleOfError(shelf))}`;
  if (shelf.maintenanceRequest && name === "ready")
    return `is about to carry out ${shelf.maintenanceRequest.operation}`;
  if (view.lastPass === "waiting") return `${phrase(shelf)}: ${view.reason}`;
  return name === "ready"
    ? `is ready, with power ${shelf.facts.powerState ?? "unknown"}; nothing is wrong`
    : phrase(shelf);
}

function phrase(shelf: PowerShelfRecord): string {
  const { name } = shelf.state;
  return name === "ready" || name === "error" ? `is ${name === "error" ? "in error" : name}` : `is ${doingOf(shelf)}`;
}

function doingOf({ state: { name, operation } }: PowerShelfRecord): string {
  switch (name) {
    case "maintenance":
      return `carrying out ${operation ?? "an operation"}`;
    case "fetching_data":
      return "being read for the first time";
    case "initializing":
      return "waiting for the controller's first pass";
    case "configuring":
      return "being configured";
    case "deleting":
      return "being removed";
    default:
      return "";
  }
}

const lastOperation = ({ lastMaintenanceRequest }: PowerShelfRecord): MaintenanceOperation | "the last operation" =>
  lastMaintenanceRequest?.operation ?? "the last operation";

function waitingFor({ view, shelf, pass, claims, trouble }: Seen): string[] {
  const holders = claims.map(
    ({ holder, thing, reason }) => `${holder.kind} ${holder.id}, which ${reason} (${thing.kind} ${thing.id})`,
  );
  const own = view.lastPass === "waiting" && claims.length === 0 ? [view.reason] : [];
  const person = shelf.state.name === "error" ? ["a new request: it does nothing by itself"] : [];
  const { deadline = minutes(0) } = powerShelfLifecycle.states.maintenance;
  const until =
    shelf.state.name === "maintenance" && trouble.cause !== null
      ? [`the deadline at ${iso(new Date(shelf.stateSince.getTime() + deadline))}, when it gives up and is in error`]
      : [];
  return [...holders, ...own, ...(pass.waits === "" ? [] : [pass.waits]), ...until, ...person];
}

function lastFailureOf({ view, shelf, pass, trouble }: Seen): LastFailure | null {
  const { name, operation } = shelf.state;
  const step = operation === undefined ? name : `${name} (${operation})`;
  if (view.lastPass === "failed")
    return { at: view.failingSince, runId: "", step, attempt: Math.max(1, pass.failures), message: trouble.message };
  const last = shelf.lastMaintenanceRequest;
  if (last?.outcome !== "failed") return null;
  const message = last.message ?? shelf.state.cause ?? "";
  return { at: last.endedAt, runId: "", step: `maintenance (${last.operation})`, attempt: 1, message };
}

const FIXED_BY_CREDENTIALS: ReadonlySet<CauseCode> = new Set([
  "credentials_rejected",
  "sign_in_stopped",
  "credentials_missing",
  "credentials_not_for_this_address",
  "forbidden",
]);

function commandsFor({ shelf, pass, claims, trouble }: Seen): NextCommand[] {
  const { id, bmc, state } = shelf;
  const again = askAgain(shelf);
  const refresh = say(`power-shelf refresh ${id}`, readsNow(pass));
  const show = say(`power-shelf show ${id}`, "shows all that is known of it");
  const history = say(`power-shelf history ${id}`, "shows what happened to it, and who did what");
  if (claims.length > 0) return [show, history];
  const failedBy = trouble.cause ?? (state.name === "error" ? troubleOfError(shelf).cause : null);
  const fix = fixFor(failedBy, id, bmc.mac);
  const { observedAt } = shelf.facts;
  const wasSeenSince = observedAt !== null && Date.parse(observedAt) > shelf.stateSince.getTime();
  const isFixed = trouble.message === "" && (wasSeenSince || fix.length === 0);
  if (state.name === "error") {
    // What is wrong now comes first; with nothing wrong any more, asking again is what is left.
    if (isFixed) return [...again, ...fix, say(`power-shelf log ${id}`, "shows the shelf's own log"), history];
    return [...fix, refresh, ...again, history];
  }
  if (pass.isStranded)
    return [refresh, say("system", "shows which server answers, and whether it is healthy"), history];
  if (trouble.message === "" && state.name === "ready") return [show, history];
  return [...fix, refresh, say(`power-shelf log ${id}`, "shows the shelf's own log"), show, history];
}

const readsNow = ({ at }: NextPass): string =>
  `reads it again now${at === null ? "" : ` instead of at ${iso(at)}`}: as soon as the cause is fixed`;

function askAgain({ id, lastMaintenanceRequest }: PowerShelfRecord): NextCommand[] {
  if (!lastMaintenanceRequest) return [];
  const verb = lastMaintenanceRequest.operation.replace("_", "-");
  return [say(`power-shelf maintenance ${verb} --power-shelf-id ${id}`, "requests it again, and leads out of error")];
}

function fixFor(failedBy: Cause | null, id: string, mac: string): NextCommand[] {
  if (failedBy === null) return [];
  const { code: cause, facts } = failedBy;
  const shown = facts?.shown;
  if (FIXED_BY_CREDENTIALS.has(cause))
    return [
      say(`power-shelf set-credentials ${id} --bmc-username <name>`, "sets other credentials, which are tried at once"),
    ];
  const refresh = say(`power-shelf refresh ${id}`, "reads the shelf again, once the right device answers there");
  const move = say(
    `expected-power-shelf update ${mac} --bmc-endpoint <host[:port]>`,
    "sets the right address of its BMC",
  );
  switch (cause) {
    case "certificate_changed":
      return [
        say(
          `power-shelf accept-certificate ${id} --fingerprint ${shown ?? "<sha256>"}`,
          "pins the certificate that its BMC shows: only when the BMC was replaced or given a new one, and the fingerprint was compared",
        ),
      ];
    case "wrong_identity":
      return [refresh, move];
    case "certificate_untrusted":
    case "address_not_allowed":
    case "plain_http_not_allowed":
      return [say("config check", "shows bmc.ca_file, bmc.allowed_networks and bmc.plain_http as they are in effect")];
    default:
      return [];
  }
}
