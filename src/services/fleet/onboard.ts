import { randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { FLEET_ONBOARDING } from "../../runs/workflows/fleet/words.ts";
import { type FleetNodeRecord, findByRequest, listNodes } from "../../store/fleet/nodes.ts";
import { create } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { isUniqueViolation, retryOnConflict, type Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import { actorOf, doneBy } from "../call/initiator.ts";
import { fingerprintOf, newRunId } from "../run/creation.ts";
import type { RunDeps } from "../run/deps.ts";
import { checkServer, issueEnrollment } from "./bootstrap.ts";
import { createFleetJob, holdSite, nodeKey, policyOf, runKey } from "./jobs.ts";
import { type CheckedNode, checkNode, type OnboardNode } from "./node-input.ts";
import { machineOfNode, withAccount } from "./node-machine.ts";
import { namesOf, refuseTwin } from "./node-twins.ts";

/**
 * Puts a node on record, with the machine that it is, and starts its onboarding: all of it or nothing. The same request again finds the
 * node, whatever races.
 */
export async function onboardNode(deps: RunDeps, caller: Caller, input: OnboardNode): Promise<FleetNodeRecord> {
  const asked = await withAccount(deps, caller, checkNode(input));
  const id = await retryOnConflict(() => onRace(() => deps.db.transaction((tx) => onboard(tx, deps, caller, asked))));
  const [node] = await listNodes(deps.db, { ids: [id] });
  if (!node) throw new Error(`fleet node ${id} was written and is not there`);
  return node;
}

async function onboard(tx: Transaction, deps: RunDeps, caller: Caller, asked: CheckedNode): Promise<string> {
  const { requestId, site, profile, sku, hostname, ipmiIp, mode } = asked;
  // Without the password: what it hashes to could be guessed.
  const given = asked.account === null ? [] : [asked.account.username];
  const fingerprint = fingerprintOf([site, profile, sku, hostname, ipmiIp, mode, ...given]);
  const [id, runId] = [`fn-${randomUUID()}`, newRunId()];
  await lockThings(tx, [{ kind: "fleet_request", id: requestId }, ...namesOf(asked), nodeKey(id), runKey(runId)]);
  const known = await findByRequest(tx, requestId);
  if (known) return sameNode(known, { requestId, fingerprint });
  await holdSite(tx, site);
  const policy = await policyOf(tx, asked);
  await refuseTwin(tx, { ...asked, machineId: null });
  const machineId = await machineOfNode(tx, deps, caller, asked);
  if (mode === "manual") checkServer(deps);
  const facts = mode === "manual" ? { enrollment: issueEnrollment(deps, { id, enrollment: null }, policy) } : {};
  await create(tx, storeOf(deps.stores, fleetNodeLifecycle.kind), {
    id,
    row: {
      ...{ site, profile, sku, hostname, mode, fingerprint, facts },
      ...{ ipmi_ip: ipmiIp, machine_id: machineId, request_id: requestId, created_by: actorOf(caller) },
    },
    ...(mode === "maas" && { state: "enrolling" }),
    ...doneBy(caller),
  });
  if (mode === "maas") {
    const node = { id, mode, site, profile };
    await createFleetJob(tx, deps, caller, { id: runId, workflow: FLEET_ONBOARDING, node, requestId, fingerprint });
  }
  return id;
}

function sameNode(
  known: { readonly id: string; readonly fingerprint: string },
  { requestId, fingerprint }: { readonly requestId: string; readonly fingerprint: string },
): string {
  if (known.fingerprint === fingerprint) return known.id;
  throw new AppError(
    "already_exists",
    `request_id: ${requestId} made fleet node ${known.id}, which has different parameters; choose a new one`,
    { field: "request_id", next: `millwright fleet show ${known.id}` },
  );
}

/** What the locks do not cover, the unique indexes do: then the other one is there, and is named on the next try. */
async function onRace<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isUniqueViolation(error)) return work();
    throw error;
  }
}
