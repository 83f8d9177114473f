import { createHash, timingSafeEqual } from "node:crypto";
import { systemClock } from "../kernel/clock.ts";
import { follow, type Move } from "../kernel/decide.ts";
import { AppError } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/lifecycle.ts";
import { installLifecycle } from "../lifecycles/install/lifecycle.ts";
import {
  answerTo,
  ERASE_EVENTS,
  failureOf,
  type NodeReport,
  REPORTED,
  toldBy,
  verbOf,
  whyNotErased,
} from "../lifecycles/install/report.ts";
import { recordChanges } from "../store/changes.ts";
import { list as listClaims } from "../store/claims.ts";
import { retryOnConflict, type Transaction } from "../store/database.ts";
import { rememberKeys } from "../store/idempotency.ts";
import { findMachinesByMac, type InstallRecord, listReplaced, loadInstalls } from "../store/installs.ts";
import { lockThings } from "../store/locks.ts";
import { storeOf } from "../store/things.ts";
import { commitUnits, type Unit } from "../store/transitions.ts";
import * as work from "../store/work.ts";
import type { ServiceDeps } from "./deps.ts";

export { INSTALLATION_STATUSES, NODE_EVENTS, type NodeReport } from "../lifecycles/install/report.ts";

export const INSTALL_KIND = "install";
export const installKey = (id: string) => ({ kind: INSTALL_KIND, id });
const machineKey = (id: string) => ({ kind: "machine", id });

export interface ReportInput {
  readonly report: NodeReport;
  /** The node, where the caller knows it; otherwise it is whose the MAC address is. */
  readonly nodeId?: string | undefined;
  /** From where it came, for the audit. */
  readonly address: string | null;
  /** Makes it safe to send again: under a key that was seen, nothing happens. */
  readonly reportId?: string | undefined;
  /** What the boot script of this boot gave the node to show. */
  readonly token?: string | undefined;
}

export interface ReportAnswer {
  /** As it is after the report. */
  readonly install: InstallRecord;
  readonly message: string;
}

/** Where reports are handed in: many at once travel together. */
export interface ReportDesk {
  submit(input: ReportInput): Promise<ReportAnswer | AppError>;
}

export interface ReportRules {
  /** Each report must show the token of its boot. */
  readonly requireTokens: boolean;
}

export const unknownNode = (mac: string): AppError =>
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
  const owners = await findMachinesByMac(
    deps.db,
    inputs.map(({ report }) => report.mac),
  );
  const addressed = inputs.flatMap((input): Addressed[] => {
    const id = input.nodeId ?? owners.get(input.report.mac);
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
  // Of one node, one after the other: the second is judged by what the first one did.
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
  const now = (deps.clock ?? systemClock).now();
  const { things } = await loadInstalls(
    tx,
    round.map(({ id }) => id),
  );
  const installs = new Map(things.map((install) => [install.id as string, install]));
  const answers = new Map<ReportInput, ReportAnswer | AppError>();
  const accepted = round.flatMap(({ input, id }) => {
    const install = installs.get(id);
    if (!install) answers.set(input, unknownNode(input.report.mac));
    else if (needsToken(rules, input) && !showsToken(input, install)) answers.set(input, badToken());
    else return [{ input, id, install }];
    return [];
  });
  // Not of those that are refused: a stranger must not use up the id of a report that the node is still to send.
  const seen = await seenBefore(tx, accepted);
  const held = await heldByOthers(tx, things);
  const messages = new Map(accepted.filter(({ input }) => seen.has(input)).map(({ input }) => [input, REPORTED]));
  const judged = accepted
    .filter(({ input }) => !seen.has(input))
    .map(({ input, id, install }) => judge(input, install, held.get(id), now));
  await write(tx, deps, judged);
  for (const { input, install, move } of judged)
    messages.set(input, answerTo(input.report, install, move !== undefined));
  const after = await loadInstalls(tx, [...installs.keys()]);
  const changed = new Map(after.things.map((install) => [install.id as string, install]));
  for (const { input, id } of round) {
    const [message, install] = [messages.get(input), changed.get(id)];
    if (message !== undefined && install !== undefined) answers.set(input, { install, message });
  }
  return answers;
}

interface Judged {
  readonly input: ReportInput;
  readonly install: InstallRecord;
  readonly move: Move | undefined;
  /** Why a report that the table knows in principle was not followed. */
  readonly ignored: string | undefined;
  /** What people are to see of that. */
  readonly facts?: JsonObject;
  readonly now: Date;
}

/** What the table makes of a report. */
function judge(input: ReportInput, install: InstallRecord, holder: string | undefined, now: Date): Judged {
  const { report } = input;
  const verb = verbOf(report);
  const base = { input, install, now };
  const unfinished = verb === "erased" ? unfinishedErase(input, install) : undefined;
  if (unfinished !== undefined)
    return { ...base, move: undefined, ignored: unfinished, facts: { lastInstallError: unfinished } };
  if (verb === undefined) return { ...base, move: undefined, ignored: undefined };
  const move = follow(installLifecycle, install, {
    owner: "agent",
    name: verb,
    data: {
      now: now.toISOString(),
      token_shown: showsToken(input, install),
      ...(report.progress !== undefined && { progress: report.progress }),
      ...(report.erasedDisk !== undefined && { disk: report.erasedDisk }),
    },
    ...((verb === "failed" || verb === "erase_failed") && { message: failureOf(report) }),
  });
  if (!move) return { ...base, move, ignored: `${verb} was reported while ${install.state.name}` };
  const begins = !claims(move.from) && claims(move.to);
  if (begins && holder !== undefined) {
    return { ...base, move: undefined, ignored: `${verb} was reported while ${holder} works on the machine` };
  }
  return { ...base, move, ignored: undefined };
}

/** In every other state `erased` leads nowhere anyway. */
const unfinishedErase = ({ report }: ReportInput, install: InstallRecord): string | undefined =>
  install.state.name === "deprovisioning" ? whyNotErased(install, report.erasedDisks ?? []) : undefined;

const claims = (state: string): boolean =>
  (installLifecycle.states as Readonly<Record<string, { readonly claims?: true }>>)[state]?.claims === true;

async function write(tx: Transaction, deps: ServiceDeps, judged: readonly Judged[]): Promise<void> {
  const units = judged.map(({ input, install, move, facts: seen, now }): Unit => {
    const facts = { ...toldBy(input.report, now), ...seen };
    return {
      kind: INSTALL_KIND,
      thing: install,
      ...(move && { move }),
      facts: Object.fromEntries(Object.entries(facts).filter(([name, value]) => differs(install, name, value))),
      actor: `node ${install.mac}`,
      address: input.address,
    };
  });
  const results = await commitUnits(tx, deps.stores, units);
  const odd = results.findIndex((result) => result.type !== "committed");
  if (odd >= 0) throw new Error(`the report of ${judged[odd]?.install.id} was not written: ${results[odd]?.type}`);
  await recordChanges(
    tx,
    storeOf(deps.stores, INSTALL_KIND),
    judged.flatMap(({ input, install, ignored }) =>
      ignored === undefined
        ? []
        : [
            {
              id: install.id,
              type: "report_ignored",
              actor: `node ${install.mac}`,
              address: input.address,
              reason: ignored,
              data: { ...input.report },
              set: {},
              touchesBasis: false,
            },
          ],
    ),
  );
  // The engine watches the clock of an attempt, which progress does not move.
  const moved = judged.filter(({ move }) => move !== undefined && move.trigger !== "progress");
  await work.wake(
    tx,
    moved.flatMap(({ install: { id, facts } }) => [
      installKey(id),
      // The run that ordered it waits for just this.
      ...(facts.orderedBy === null ? [] : [{ kind: "run", id: facts.orderedBy }]),
    ]),
  );
  await wakeReplaced(
    tx,
    moved.filter(({ move }) => move?.to === "active").map(({ install }) => install.id),
  );
}

/** A node that is active has proved itself to the one whose place it takes. */
export async function wakeReplaced(tx: Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await work.wake(
    tx,
    (await listReplaced(tx, ids)).map(({ id }) => installKey(id)),
  );
}

function differs(install: InstallRecord, name: string, value: unknown): boolean {
  const before: unknown = install.facts[name as keyof InstallRecord["facts"]];
  return before instanceof Date ? before.toISOString() !== value : before !== value;
}

async function seenBefore(tx: Transaction, round: readonly Addressed[]): Promise<ReadonlySet<ReportInput>> {
  const keyed = round.flatMap(({ input, id }) =>
    input.reportId === undefined ? [] : [{ input, scope: `report/${id}`, key: input.reportId, thingId: id }],
  );
  const known = await rememberKeys(tx, keyed);
  return new Set(keyed.filter((each) => known.has(each)).map(({ input }) => input));
}

/** Who holds a machine and is not its install, nor the run that installs through it. */
export async function heldByOthers(
  tx: Transaction,
  installs: readonly InstallRecord[],
): Promise<ReadonlyMap<string, string>> {
  const ours = new Map(installs.map((install) => [install.id as string, install]));
  const claimed = await listClaims(
    tx,
    installs.map(({ id }) => machineKey(id)),
  );
  return new Map(
    claimed
      .filter(({ grantedAt }) => grantedAt !== null)
      .filter(({ thing, holder }) => {
        const install = ours.get(thing.id);
        const isOwn = holder.kind === INSTALL_KIND && holder.id === thing.id;
        return !isOwn && !(holder.kind === "run" && holder.id === install?.facts.orderedBy);
      })
      .map(({ thing, holder }) => [thing.id, `${holder.kind} ${holder.id}`]),
  );
}

export const hashToken = (token: string): string => createHash("sha256").update(token).digest("hex");

function showsToken({ token }: ReportInput, { reportTokenHash }: InstallRecord): boolean {
  if (token === undefined || reportTokenHash === null) return false;
  return timingSafeEqual(Buffer.from(hashToken(token)), Buffer.from(reportTokenHash));
}

const needsToken = ({ requireTokens }: ReportRules, { report }: ReportInput): boolean =>
  requireTokens || ERASE_EVENTS.has(report.event ?? "");

const badToken = (): AppError =>
  new AppError(
    "unauthenticated",
    "report_token: each report must show the token that the node's last boot script gave it",
    { field: "report_token" },
  );
