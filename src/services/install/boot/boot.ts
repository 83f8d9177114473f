import { AppError, type ErrorKind } from "../../../kernel/errors.ts";
import { type BootDecision, decideBoot, type WorkflowSeen } from "../../../lifecycles/install/boot-decision.ts";
import type { Architecture, BootMode } from "../../../lifecycles/install/install.ts";
import { afterReboot, freshSteps } from "../../../lifecycles/install/install-steps.ts";
import {
  isSameArchitecture,
  mismatch,
  type Workflow,
  type WorkflowBoot,
} from "../../../lifecycles/install/workflow.ts";
import { parseStamp } from "../../../runs/steps/facts/install-stamp.ts";
import { findLiveNodes } from "../../../store/fleet/nodes.ts";
import { countFoundByBoot } from "../../../store/install/found-by-boot.ts";
import { type InstallRecord, loadInstalls } from "../../../store/install/installs.ts";
import { bootActorOf } from "../../../store/install/twins.ts";
import { listWorkflows } from "../../../store/install/workflows.ts";
import { recordChange } from "../../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../../store/lifecycle/commit/commit-or-refuse.ts";
import { storeOf } from "../../../store/lifecycle/things.ts";
import { applyVerb } from "../../../store/lifecycle/verbs.ts";
import { machineStore } from "../../../store/machine/machines.ts";
import { retryOnConflict, type Transaction } from "../../../store/postgres/database.ts";
import { isResumed } from "../../../store/restore/parked.ts";
import { findLiveReview } from "../../../store/restore/reviews.ts";
import type { Caller } from "../../call/caller.ts";
import { nowOf, type ServiceDeps } from "../../call/deps.ts";
import { findGroupByWord } from "../device-groups.ts";
import { heldByOthers } from "../holders.ts";
import { HARDWARE_FACTS, type HardwareFact, insertInstall, lockInstall } from "../installs.ts";
import { INSTALL_KIND } from "../key.ts";
import { claimantAs } from "./armed-boot.ts";
import { findBootOwner } from "./boot-owner.ts";
import { writeBootScript } from "./boot-script.ts";
import type { DiscoveryGate } from "./discovery-gate.ts";
import { bootAsking, handOut, noteRival } from "./hand-out.ts";

/** What firmware says of the machine that it boots. */
export interface BootRequest {
  readonly mac: string;
  readonly arch?: Architecture | undefined;
  readonly bootMode?: BootMode | undefined;
  /** What it knows of its hardware; empty: nothing. */
  readonly hardware: Partial<Record<HardwareFact, string>>;
  /** As the node reaches us. */
  readonly server: string;
  readonly address: string | null;
}

export interface BootRules {
  readonly autoRegister: boolean;
  /** The group of machines that nobody put on record. */
  readonly defaultGroupId: string | null;
  /** What keeps strangers from filling the inventory. Absent: nothing. */
  readonly discovery?: DiscoveryGate;
  /** What wipes disks; null: nothing is configured, and erasing waits for it. */
  readonly eraser: WorkflowBoot | null;
}

/** Answers a machine that boots from the network: puts it on record, decides by its state, and writes the script. */
export async function bootNode(deps: ServiceDeps, rules: BootRules, request: BootRequest): Promise<string> {
  const answer = await untilAlone(() => deps.db.transaction((tx) => answerBoot(tx, deps, rules, request)));
  const { server, mac, hardware } = request;
  return writeBootScript({ server, mac, ip: hardware.ipAddress, ...answer });
}

const TRIES = 4;
const RACES: ReadonlySet<string> = new Set<ErrorKind>(["conflict", "already_exists", "not_found"]);

/**
 * Two boots of a machine that is not known yet, or a boot and an operator, race for its record: who comes second finds it. The
 * same for the default group, which may go just then.
 */
async function untilAlone<T>(work: () => Promise<T>): Promise<T> {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await retryOnConflict(work);
    } catch (error) {
      if (!(error instanceof AppError) || !RACES.has(error.kind) || left <= 1) throw error;
    }
  }
}

interface BootAnswer {
  readonly decision: BootDecision;
  readonly nodeId?: string;
  readonly token?: string;
  readonly boot?: WorkflowBoot;
  readonly steps?: number;
  /** What the system that a run has ordered is to show of itself. */
  readonly stamp?: string;
}

async function answerBoot(
  tx: Transaction,
  deps: ServiceDeps,
  rules: BootRules,
  request: BootRequest,
): Promise<BootAnswer> {
  const node: Caller = { name: bootActorOf(request.mac), roles: [], address: request.address };
  const review = await findLiveReview(tx);
  const { owner, problem: unclear, isStrange } = await findBootOwner(tx, deps, node, request);
  if (unclear !== undefined) return { decision: { type: "problem", message: unclear } };
  // No word of what is on record: anybody on the boot network can ask with any address.
  if (isStrange) return { decision: { type: "local", why: "its hardware is not that of the machine on record" } };
  if (owner !== undefined && (await findLiveNodes(tx, [owner])).has(owner))
    return { decision: { type: "local", why: "its system is not installed by this server" } };
  const isOnRecord = owner !== undefined && (await loadInstalls(tx, [owner])).things.length > 0;
  if (owner === undefined && !rules.autoRegister) return { decision: { type: "local", why: "not on record" } };
  if (owner === undefined && rules.discovery !== undefined && (await isOneTooMany(tx, rules.discovery, request)))
    return { decision: { type: "local", why: "too many machines that nobody knows have booted" } };
  const id = isOnRecord
    ? owner
    : await discover(tx, deps, review ? { ...rules, defaultGroupId: null } : rules, node, request);
  const install = isOnRecord ? await noteBoot(tx, deps, node, request, owner) : await lockInstall(tx, id);
  if (review && !(await isResumed(tx, review.id, { kind: INSTALL_KIND, id })))
    return { nodeId: id, decision: { type: "local", why: `restore review ${review.id} has not ended` } };
  const { seen, workflow } = await workflowFor(tx, install);
  const boot = workflow?.boot;
  const asked = bootAsking(deps, request, install);
  const decision = decideBoot(install, seen.type, claimantAs(install, asked, request.address));
  const handing = { node, request, install, asked };
  if (decision.type === "erase") {
    if (rules.eraser === null)
      return {
        nodeId: id,
        decision: { type: "problem", message: "no erase environment is configured (install.erase)" },
      };
    return { nodeId: id, decision, boot: rules.eraser, token: await handOut(tx, deps, handing) };
  }
  if (decision.type !== "install") {
    await noteRival(tx, deps, handing);
    return { nodeId: id, decision };
  }
  // Its command line may hold secrets, and nobody expects that it is the machine that asks.
  if (asked.boot.armedBy === null)
    return {
      nodeId: id,
      decision: { type: "wait", why: `waits, since nothing has armed its boot: millwright node arm ${id}` },
    };
  const holder = (await heldByOthers(tx, [install])).get(id);
  // A run that restarts it for reasons of its own does not want it installed.
  if (holder !== undefined) return { nodeId: id, decision: { type: "local", why: `${holder} works on the machine` } };
  const problem = seen.mismatch ?? changedSince(install, boot);
  if (problem !== undefined) return { nodeId: id, decision: { type: "problem", message: problem } };
  const { orderStamp: stamp, facts } = install;
  const steps =
    decision.resumes === true ? afterReboot(facts.steps) : workflow === undefined ? [] : freshSteps(workflow);
  return {
    nodeId: id,
    decision,
    ...(boot && { boot }),
    steps: steps.length,
    ...(facts.orderedBy !== null && stamp !== null && { stamp }),
    token: await handOut(tx, deps, { ...handing, steps }),
  };
}

/** A run ordered one image; a workflow that names another by now does not install it. */
function changedSince({ facts, orderStamp }: InstallRecord, boot: WorkflowBoot | undefined): string | undefined {
  const ordered = facts.orderedBy === null ? undefined : parseStamp(orderStamp ?? undefined);
  if (ordered === undefined || boot?.method !== "image" || boot.image_digest === ordered.digest) return undefined;
  return `its workflow installs another image than run ${facts.orderedBy} ordered`;
}

/** Its next boot tries again. */
async function isOneTooMany(tx: Transaction, gate: DiscoveryGate, { mac, address }: BootRequest): Promise<boolean> {
  const { most, refused } = gate.rules;
  // The database is asked last: a flood is to cost next to nothing.
  const limit = gate.take(address) ?? ((await countFoundByBoot(tx, most)) >= most ? "discovered" : undefined);
  if (limit !== undefined) refused(limit, { mac, address });
  return limit !== undefined;
}

/** The first boot: on record as discovered, and approved at once where its group wants that. */
async function discover(
  tx: Transaction,
  deps: ServiceDeps,
  { defaultGroupId }: BootRules,
  node: Caller,
  { mac, arch = "x86_64", bootMode = "bios", hardware }: BootRequest,
): Promise<string> {
  // A group that is not there, or not any more, keeps no machine from being found.
  const group = defaultGroupId === null ? undefined : await findGroupByWord(tx, defaultGroupId);
  const groupId = group?.id ?? null;
  // Empty is nothing said: a later boot may know it.
  const told = HARDWARE_FACTS.filter((name) => (hardware[name] ?? "") !== "").map((name) => [name, hardware[name]]);
  const facts = { ...Object.fromEntries(told), lastSeenAt: nowOf(deps).toISOString() };
  const id = await insertInstall(tx, deps, node, { mac, arch, bootMode, groupId, facts, foundByBoot: true });
  if (group?.effectiveAutoProvision === true && (await isFresh(tx, id))) {
    const cause = {
      kind: INSTALL_KIND,
      id,
      owner: "other",
      name: "auto_provisioned",
      actor: `group ${group.name}`,
    } as const;
    await applyVerb(tx, deps.stores, cause);
  }
  return id;
}

/** A machine of the inventory that is in use, and boots from the network for the first time, has something to lose. */
async function isFresh(tx: Transaction, id: string): Promise<boolean> {
  const [machine] = (await machineStore.load(tx, [id])).things;
  return machine?.state.name === "FACTORY_READY";
}

/**
 * That it was seen; of its hardware only what nobody has said yet. How it boots is replaced by a boot that was expected alone, since anybody can
 * ask under its address; and so is where it is, once it is approved.
 */
async function noteBoot(
  tx: Transaction,
  deps: ServiceDeps,
  node: Caller,
  request: BootRequest,
  id: string,
): Promise<InstallRecord> {
  const { hardware, arch, bootMode } = request;
  const install = await lockInstall(tx, id);
  const { as, boot } = bootAsking(deps, request, install);
  const isExpected = as !== "contested" && boot.armedBy !== null;
  const told = HARDWARE_FACTS.filter((name) => {
    const value = hardware[name];
    if (value === undefined || value === "") return false;
    const mayMove = name === "ipAddress" && (isExpected || install.state.name === "discovered");
    const isNews = mayMove && install.facts.ipAddress !== value;
    return isNews || (install.facts[name] ?? "") === "";
  });
  const facts = {
    ...Object.fromEntries(told.map((name) => [name, hardware[name] ?? null])),
    lastSeenAt: nowOf(deps).toISOString(),
  };
  await commitOrRefuse(tx, deps.stores, [
    { kind: INSTALL_KIND, thing: install, facts, actor: node.name ?? "", address: node.address },
  ]);
  // How it boots, only the firmware knows: what was said at its registration may have been a guess.
  const set = {
    ...(isExpected && arch !== undefined && !isSameArchitecture(arch, install.arch) && { arch }),
    ...(isExpected && bootMode !== undefined && bootMode !== install.bootMode && { boot_mode: bootMode }),
  };
  if (Object.keys(set).length > 0) {
    const by = { actor: node.name ?? "", address: node.address };
    await recordChange(tx, storeOf(deps.stores, INSTALL_KIND), { id, type: "firmware_changed", ...by, data: set, set });
  }
  return lockInstall(tx, id);
}

interface SeenWorkflow {
  readonly type: WorkflowSeen;
  readonly mismatch?: string | undefined;
}

async function workflowFor(
  tx: Transaction,
  install: InstallRecord,
): Promise<{ readonly seen: SeenWorkflow; readonly workflow?: Workflow }> {
  const { effectiveWorkflowId: id } = install;
  if (id === null) return { seen: { type: "none" } };
  // What a run has ordered is installed, whether or not it is still offered to others.
  const [workflow] = await listWorkflows(tx, { ids: [id], activeOnly: install.facts.orderedBy === null });
  if (!workflow) return { seen: { type: "missing" } };
  return { seen: { type: "ready", mismatch: mismatch(workflow, install) }, workflow };
}
