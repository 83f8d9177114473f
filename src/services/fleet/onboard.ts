import { randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { FLEET_ONBOARDING } from "../../runs/workflows/fleet/words.ts";
import {
  type FleetNodeRecord,
  findByRequest,
  findTwins,
  listNodes,
  type NodeIdentity,
} from "../../store/fleet/nodes.ts";
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
import { findOrRegisterMachine } from "./node-machine.ts";

/**
 * Puts a node on record, with the machine that it is, and starts its onboarding: all of it or nothing. The same request again finds the
 * node, whatever races.
 */
export async function onboardNode(deps: RunDeps, caller: Caller, input: OnboardNode): Promise<FleetNodeRecord> {
  const asked = checkNode(input);
  const id = await retryOnConflict(() => onRace(() => deps.db.transaction((tx) => onboard(tx, deps, caller, asked))));
  const [node] = await listNodes(deps.db, { ids: [id] });
  if (!node) throw new Error(`fleet node ${id} was written and is not there`);
  return node;
}

async function onboard(tx: Transaction, deps: RunDeps, caller: Caller, asked: CheckedNode): Promise<string> {
  const { requestId, site, profile, sku, hostname, ipmiIp, mode } = asked;
  const fingerprint = fingerprintOf([site, profile, sku, hostname, ipmiIp, mode]);
  const [id, runId] = [`fn-${randomUUID()}`, newRunId()];
  await lockThings(tx, [...namesOf(asked), nodeKey(id), runKey(runId)]);
  const known = await findByRequest(tx, requestId);
  if (known) return sameNode(known, { requestId, fingerprint });
  await holdSite(tx, site);
  const policy = await policyOf(tx, asked);
  await refuseTwin(tx, { ...asked, machineId: null });
  const machineId = await findOrRegisterMachine(tx, deps, caller, asked);
  await refuseTwin(tx, { ...asked, machineId });
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

/** Locked before anything is read, so that who onboards the same node waits, and then finds it. */
const namesOf = ({ requestId, site, hostname, ipmiIp }: CheckedNode) => [
  { kind: "fleet_request", id: requestId },
  { kind: "fleet_hostname", id: `${site}/${hostname}` },
  ...(ipmiIp === null ? [] : [{ kind: "fleet_bmc", id: ipmiIp }]),
];

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

async function refuseTwin(tx: Transaction, identity: NodeIdentity): Promise<void> {
  const [twin] = await findTwins(tx, identity);
  if (!twin) return;
  const has =
    twin.site === identity.site && twin.hostname === identity.hostname
      ? (["hostname", `the name ${twin.hostname}`] as const)
      : twin.ipmiIp !== null && twin.ipmiIp === identity.ipmiIp
        ? (["ipmi_ip", `the BMC ${twin.ipmiIp}`] as const)
        : (["ipmi_ip", `the machine ${twin.machineId}`] as const);
  throw new AppError(
    "already_exists",
    `${has[0]}: fleet node ${twin.id} (${twin.hostname}, ${twin.state.name}) has ${has[1]}`,
    { field: has[0], next: `millwright fleet show ${twin.id}` },
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
