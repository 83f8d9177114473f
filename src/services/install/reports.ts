import { AppError } from "../../kernel/errors.ts";
import { answerTo, ERASE_EVENTS, REPORTED } from "../../lifecycles/install/report.ts";
import { type InstallRecord, loadInstalls } from "../../store/install/installs.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { retryOnConflict, type Transaction } from "../../store/postgres/database.ts";
import { rememberKeys } from "../../store/postgres/idempotency.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { machineKey } from "../machine/machines.ts";
import { heldByOthers } from "./holders.ts";
import { installKey } from "./key.ts";
import { findOwners } from "./owners.ts";
import { badToken, needsToken, notVouchedFor, type ReportRules, trustIn } from "./report-token.ts";
import { decideReport, type ReportInput } from "./report-verdict.ts";
import { writeReports } from "./report-writing.ts";

export { INSTALLATION_STATUSES, NODE_EVENTS, type NodeReport } from "../../lifecycles/install/report.ts";
export type { ReportRules } from "./report-token.ts";
export type { ReportInput } from "./report-verdict.ts";

export interface ReportAnswer {
  /** As it is after the report. */
  readonly install: InstallRecord;
  /** What the node goes by. */
  readonly state: string;
  readonly message: string;
}

/** Where reports are handed in: many at once travel together. */
export interface ReportDesk {
  submit(input: ReportInput): Promise<ReportAnswer | AppError>;
}

const unknownNode = (mac: string): AppError =>
  new AppError("not_found", `Node not found: nothing is known of ${mac}`, { field: "mac_address" });

/**
 * Applies reports of nodes by the table, many in one transaction, and answers each: so that a thousand nodes that report at once
 * cost a few commits. A report that does not fit its node's state changes nothing and is recorded.
 */
export async function applyReports(
  deps: ServiceDeps,
  rules: ReportRules,
  inputs: readonly ReportInput[],
): Promise<readonly (ReportAnswer | AppError)[]> {
  const owners = await findOwners(
    deps.db,
    inputs.map(({ report: { mac }, token }) => ({ mac, token })),
  );
  const addressed = inputs.flatMap((input, index): Addressed[] => {
    const id = input.nodeId ?? owners[index];
    return id === undefined ? [] : [{ input, id }];
  });
  const answers = await retryOnConflict(() => deps.db.transaction((tx) => applyAll(tx, deps, rules, addressed)));
  return inputs.map((input) => answers.get(input) ?? unknownNode(input.report.mac));
}

/**
 * All or none: whoever finds that one of them cannot be written applies the others again, and what was written before it would
 * count twice.
 */
async function applyAll(
  tx: Transaction,
  deps: ServiceDeps,
  rules: ReportRules,
  addressed: readonly Addressed[],
): Promise<ReadonlyMap<ReportInput, ReportAnswer | AppError>> {
  await lockThings(
    tx,
    addressed.flatMap(({ id }) => [installKey(id), machineKey(id)]),
  );
  const answers = new Map<ReportInput, ReportAnswer | AppError>();
  // Of one node, one after the other: the second is decided by what the first one did.
  for (let rest = addressed; rest.length > 0; ) {
    const round = [...new Map(rest.toReversed().map((each) => [each.id, each])).values()];
    rest = rest.filter((each) => !round.includes(each));
    for (const [input, answer] of await applyRound(tx, deps, rules, round)) answers.set(input, answer);
  }
  return answers;
}

interface Addressed {
  readonly input: ReportInput;
  readonly id: string;
}

/** At most one report a node; the caller holds the locks. */
async function applyRound(
  tx: Transaction,
  deps: ServiceDeps,
  rules: ReportRules,
  round: readonly Addressed[],
): Promise<ReadonlyMap<ReportInput, ReportAnswer | AppError>> {
  const now = nowOf(deps);
  const { things } = await loadInstalls(
    tx,
    round.map(({ id }) => id),
  );
  const installs = new Map(things.map((install) => [install.id as string, install]));
  const answers = new Map<ReportInput, ReportAnswer | AppError>();
  const accepted = round.flatMap(({ input, id }) => {
    const install = installs.get(id);
    if (!install) {
      answers.set(input, unknownNode(input.report.mac));
      return [];
    }
    const trust = trustIn(deps, input, install);
    if (trust.is === "vouched" && ERASE_EVENTS.has(input.report.event ?? "")) {
      answers.set(input, notVouchedFor(install));
      return [];
    }
    if (!needsToken(rules, input) || trust.is !== "none") return [{ input, id, install, trust }];
    answers.set(input, badToken());
    return [];
  });
  // Not of those that are refused: a stranger must not use up the id of a report that the node is still to send.
  const seen = await seenBefore(tx, accepted);
  const held = await heldByOthers(tx, things);
  const messages = new Map(accepted.filter(({ input }) => seen.has(input)).map(({ input }) => [input, REPORTED]));
  const decided = accepted
    .filter(({ input }) => !seen.has(input))
    .map(({ input, id, install, trust }) => decideReport(input, install, { trust, holder: held.get(id), now }));
  await writeReports(tx, deps, decided);
  const shown = new Map<ReportInput, string>();
  for (const { input, install, move, shownState } of decided) {
    messages.set(input, answerTo(input.report, install, move !== undefined));
    if (shownState !== undefined) shown.set(input, shownState);
  }
  const after = await loadInstalls(tx, [...installs.keys()]);
  const changed = new Map(after.things.map((install) => [install.id as string, install]));
  for (const { input, id } of round) {
    const [message, install] = [messages.get(input), changed.get(id)];
    if (message === undefined || install === undefined) continue;
    answers.set(input, { install, message, state: shown.get(input) ?? install.state.name });
  }
  return answers;
}

async function seenBefore(tx: Transaction, round: readonly Addressed[]): Promise<ReadonlySet<ReportInput>> {
  const keyed = round.flatMap(({ input, id }) =>
    input.reportId === undefined ? [] : [{ input, scope: `report/${id}`, key: input.reportId, thingId: id }],
  );
  const known = await rememberKeys(tx, keyed);
  return new Set(keyed.filter((each) => known.has(each)).map(({ input }) => input));
}
