import { createHash } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import { batchLifecycle } from "../../lifecycles/batch/lifecycle.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import type { Run } from "../../runs/model/run.ts";
import { type BatchNode, onboardBatch } from "../../runs/steps/fleet/onboard-batch.ts";
import { create } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { findOnTarget } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import { actorOf, doneBy } from "../call/initiator.ts";
import { refusal } from "../catalog/entries.ts";
import { checkRunRequestId, createRun, fingerprintOf, newRunId, sameRequest } from "../run/creation.ts";
import type { RunDeps } from "../run/deps.ts";
import { getRun } from "../run/read.ts";
import { keepAccounts } from "./batch-accounts.ts";
import { holdSite, policyOf, runKey } from "./jobs.ts";
import { type CheckedNode, checkNode, type OnboardNode } from "./node-input.ts";
import { withAccount } from "./node-machine.ts";

export interface OnboardNodes {
  readonly requestId: string;
  readonly nodes: readonly Omit<OnboardNode, "requestId">[];
}

const MOST_NODES = 1_000;

/**
 * Onboards many nodes, of each profile as many at a time as its batch_max_parallel says. All rows are checked before the first begins; what
 * the server is told then is kept, so that it goes on whatever becomes of the caller. The same request again returns the same run.
 */
export async function onboardNodes(deps: RunDeps, caller: Caller, input: OnboardNodes): Promise<Run> {
  const { requestId } = input;
  checkRunRequestId(requestId);
  const checked: CheckedNode[] = [];
  for (const [place, node] of checkNodes(input).entries())
    checked.push(await withAccount(deps, caller, node, `nodes[${place}].`));
  const nodes = checked.map(kept);
  const given = checked.some(({ account }) => account !== null)
    ? [checked.map(({ account }) => account?.username ?? "")]
    : [];
  const fingerprint = fingerprintOf(["onboard", ...nodes, ...given]);
  const actor = actorOf(caller);
  const target = { kind: batchLifecycle.kind, id: batchIdOf(actor, requestId) };
  const asked = { requestId, fingerprint };
  const before = await findOnTarget(deps.db, { target, requestId });
  if (before) return getRun(deps, sameRequest(before, asked));
  // Before any account is kept: a row that no site or profile takes refuses the batch, which then leaves nothing behind.
  await deps.db.transaction((tx) => limitsOf(tx, nodes));
  await keepAccounts(deps, caller, checked);
  const newId = newRunId();
  const id = await deps.db.transaction(async (tx) => {
    await lockThings(tx, [target, runKey(newId)]);
    const known = await findOnTarget(tx, { target, requestId });
    if (known) return sameRequest(known, asked);
    const plan = planOf(nodes, await limitsOf(tx, nodes));
    const row = { machines: [], initiator: actor };
    await create(tx, storeOf(deps.stores, target.kind), { id: target.id, row, ...doneBy(caller) });
    await createRun(tx, deps, caller, {
      ...{ ...asked, id: newId, target, plan },
      ...{ type: "", params: {}, facts: {} },
    });
    return newId;
  });
  return getRun(deps, id);
}

/** One a request of a caller, so that a repeated request finds it. */
const batchIdOf = (actor: string, requestId: string): string =>
  `batch-${createHash("sha256")
    .update(JSON.stringify(["onboard", actor, requestId]))
    .digest("hex")
    .slice(0, 32)}`;

/** The first row that is wrong refuses all of them, by its place. */
export function checkNodes({ requestId, nodes }: OnboardNodes): readonly CheckedNode[] {
  if (nodes.length === 0 || nodes.length > MOST_NODES)
    throw refusal("nodes", `from 1 to ${MOST_NODES} are onboarded together, got ${nodes.length}`);
  const seen = new Set<string>();
  return nodes.map((node, place) => {
    const checked = at(place, () => checkNode({ ...node, requestId }));
    const { site, hostname, ipmiIp } = checked;
    for (const name of [`${site}/${hostname}`, ...(ipmiIp === null ? [] : [ipmiIp])]) {
      if (seen.has(name)) throw refusal(`nodes[${place}]`, `${name} is there twice`);
      seen.add(name);
    }
    return checked;
  });
}

/** What the plan keeps of a node, and shows: all but its account. */
const kept = ({ site, profile, sku, hostname, ipmiIp, mode }: CheckedNode): BatchNode => ({
  ...{ site, profile, sku, hostname, ipmi_ip: ipmiIp ?? "", mode },
});

function at<T>(place: number, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.kind, `nodes[${place}]: ${error.message}`, { ...error.detail, field: `nodes[${place}]` });
  }
}

async function limitsOf(tx: Transaction, nodes: readonly BatchNode[]): Promise<Readonly<Record<string, number>>> {
  const limits: Record<string, number> = {};
  for (const { site, profile } of nodes) {
    const key = `${site}/${profile}`;
    if (limits[key] !== undefined) continue;
    await holdSite(tx, site);
    limits[key] = (await policyOf(tx, { site, profile })).batch_max_parallel;
  }
  return limits;
}

function planOf(nodes: readonly BatchNode[], limits: Readonly<Record<string, number>>): Plan {
  const { timeout, maxRetries } = onboardBatch.defaults;
  const payload = { nodes: nodes.map((node) => ({ ...node })), limits };
  const step = { name: "onboard", kind: onboardBatch.kind, timeoutSeconds: timeout / 1_000, maxRetries, payload };
  return { planId: "fleet-batch", displayName: "Onboard many nodes", steps: [step] };
}
