import { AppError, changedByAnother } from "../../kernel/errors.ts";
import { type MachineId, parseMachineId } from "../../kernel/ids.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { residueFacts } from "../../kernel/residue.ts";
import { holds } from "../../lifecycles/machine/conditions.ts";
import { type DrainFacts, drainScopeOf, ownClusterOf } from "../../lifecycles/machine/machine.ts";
import { findLiveNodes } from "../../store/fleet/nodes.ts";
import { loadInstalls } from "../../store/install/installs.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import * as work from "../../store/lifecycle/work.ts";
import { recordConditions } from "../../store/machine/conditions.ts";
import { removeMachineCredentials } from "../../store/machine/credentials.ts";
import { replaceIdentities } from "../../store/machine/identities.ts";
import { listMachines, type MachineRecord, machineStore } from "../../store/machine/machines.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { refuseHeld, refuseToUse } from "../device/held.ts";
import { rackKeys } from "../device/racks.ts";
import { MACHINE_KIND, machineKey, unknownMachine } from "./machines.ts";

export interface MachineVerb {
  readonly machineId: string;
  /** Kept in the history; may be empty. */
  readonly comment: string;
}

/** What else a verb does, under the machine's lock and before it moves: checks that can say more, and what goes with it. */
type Beforehand = (tx: Transaction, machine: MachineRecord) => Promise<void>;

/** FACTORY_READY → READY. */
export const acceptMachine = (deps: ServiceDeps, caller: Caller, input: MachineVerb): Promise<MachineId> =>
  moveMachine(deps, caller, "accept", input);

export interface EnterMaintenance extends MachineVerb {
  readonly evictBarePods?: boolean;
  readonly deleteLocalData?: boolean;
}

/**
 * READY or IN_SERVICE → MAINTENANCE. Of a machine that is being drained it changes what is evicted: what stands in the way shows only
 * then, and leaving the maintenance would bring back what has gone.
 */
export async function enterMaintenance(deps: ServiceDeps, caller: Caller, input: EnterMaintenance): Promise<MachineId> {
  const drainScope: DrainFacts = {
    barePods: input.evictBarePods ?? false,
    localData: input.deleteLocalData ?? false,
  };
  const id = parseMachineId(input.machineId, "machine_id");
  const isChanged = await deps.db.transaction(async (tx) => {
    await lockThings(tx, [machineKey(id)]);
    const [machine] = (await machineStore.load(tx, [id])).things;
    if (machine?.state.name !== "MAINTENANCE" || machine.state.drain !== true) return false;
    const { barePods, localData } = drainScopeOf(machine);
    if (barePods === drainScope.barePods && localData === drainScope.localData) return false;
    const facts = { drainScope };
    await commitOrRefuse(tx, deps.stores, [{ kind: MACHINE_KIND, thing: machine, facts, ...doneBy(caller) }]);
    await work.wake(tx, [machineKey(id)]);
    return true;
  });
  return isChanged ? id : moveMachine(deps, caller, "enter_maintenance", { ...input, facts: { drainScope } });
}

/** RMA → FACTORY_READY. */
export const returnMachine = (deps: ServiceDeps, caller: Caller, input: MachineVerb): Promise<MachineId> =>
  moveMachine(deps, caller, "return", input);

/** MAINTENANCE → READY; a machine that needs somebody only when that somebody says so. */
export async function exitMaintenance(
  deps: ServiceDeps,
  caller: Caller,
  input: MachineVerb & { readonly acknowledge: boolean },
): Promise<MachineId> {
  const { acknowledge, comment } = input;
  if (acknowledge && comment.trim() === "") {
    throw new AppError("invalid_argument", "comment: is required with acknowledge: what was fixed, and by whom", {
      field: "comment",
    });
  }
  return moveMachine(deps, caller, "exit_maintenance", input, async (tx, machine) => {
    // Out of maintenance its customer would use it again, while firmware is written to it.
    await refuseToUse(
      tx,
      deps,
      { machine: machineKey(machine.id), rackId: machine.spec.rack },
      { action: "taken out of maintenance", field: "machine_id" },
    );
    if (machine.state.name !== "MAINTENANCE" || !holds(machine.conditions, "NeedsIntervention")) return;
    if (!acknowledge) throw needsIntervention(machine);
    await recordConditions(tx, machine, {
      observed: [{ type: "NeedsIntervention", status: false, reason: "Acknowledged", message: comment }],
      ...doneBy(caller),
      reason: comment,
      now: nowOf(deps),
    });
  });
}

function needsIntervention({ id, conditions }: MachineRecord): AppError {
  const why = conditions.find(({ type }) => type === "NeedsIntervention");
  const because = [why?.reason, why?.message].filter((part) => part !== undefined && part !== "").join(": ");
  return new AppError(
    "failed_precondition",
    `machine ${id} has NeedsIntervention${because === "" ? "" : ` (${because})`}: fix the cause, then acknowledge with a comment`,
    { field: "acknowledge", next: `millwright machine exit-maintenance ${id} --acknowledge --comment <text>` },
  );
}

/** Any phase → RETIRED, for good: its MAC addresses, serial and BMC are free again, and its credentials are gone. */
export const retireMachine = (deps: ServiceDeps, caller: Caller, input: MachineVerb): Promise<MachineId> =>
  moveMachine(deps, caller, "retire", input, async (tx, { id, activeRunId }) => {
    if (activeRunId !== null) {
      throw new AppError(
        "failed_precondition",
        `machine ${id} has an active run: ${activeRunId}; cancel the run first`,
        {
          next: `millwright run cancel ${activeRunId}`,
        },
      );
    }
    await refuseUnlessInstallRetired(tx, id);
    await refuseFleetNode(tx, id);
    await refuseHeld(tx, deps, [machineKey(id)], { action: "retired", field: "machine_id" });
    await replaceIdentities(tx, id, []);
    await removeMachineCredentials(tx, deps.secrets, id);
  });

const SAYS_FIT: ReadonlySet<string> = new Set(["exit_maintenance", "return"]);

/** A node that still boots, or still has data on its disks, has a machine. */
async function refuseUnlessInstallRetired(tx: Transaction, id: MachineId): Promise<void> {
  const [install] = (await loadInstalls(tx, [id])).things;
  if (!install || install.state.name === "retired") return;
  throw new AppError(
    "failed_precondition",
    `machine ${id} has an install in state ${install.state.name}; retire the node first`,
    { next: `millwright node retire ${id}` },
  );
}

/** The node would be left without the machine that it is. */
async function refuseFleetNode(tx: Transaction, id: MachineId): Promise<void> {
  const node = (await findLiveNodes(tx, [id])).get(id);
  if (!node) return;
  throw new AppError(
    "failed_precondition",
    `machine ${id} is fleet node ${node.hostname} (${node.state}); remove the node first`,
    { next: `millwright fleet decommission ${node.id} --mode full_decommission` },
  );
}

async function moveMachine(
  deps: ServiceDeps,
  caller: Caller,
  verb: string,
  input: MachineVerb & { readonly facts?: JsonObject },
  beforehand: Beforehand = async () => {},
): Promise<MachineId> {
  const id = parseMachineId(input.machineId, "machine_id");
  const comment = checkComment(input.comment);
  await deps.db.transaction(async (tx) => {
    const [before] = await listMachines(tx, { ids: [id] });
    // Its rack too: who works on what the rack gives to its trays relies on nobody beginning to use one.
    await lockThings(tx, [machineKey(id), ...rackKeys([before?.spec.rack ?? null])]);
    const [machine] = await listMachines(tx, { ids: [id] });
    if (!machine) throw unknownMachine(id);
    if (machine.spec.rack !== before?.spec.rack) throw changedByAnother(`machine ${id}`);
    await beforehand(tx, machine);
    await applyVerb(tx, deps.stores, {
      kind: MACHINE_KIND,
      id,
      owner: "caller",
      name: verb,
      ...doneBy(caller),
      ...(comment !== "" && { message: comment }),
      ...(input.facts && { facts: input.facts }),
      ...(SAYS_FIT.has(verb) && {
        facts: {
          // Whoever says that it is fit has seen to what runs left behind.
          ...residueFacts([]),
          ...(verb === "exit_maintenance" && whatMayBeCordoned(machine)),
          // What comes back is not in the cluster that it went from, and may be another machine.
          ...(verb === "return" && {
            locatorLit: true,
            joinedCluster: null,
            sshHostKey: null,
            sshHostKeySeen: null,
            certificateFingerprint: null,
          }),
        },
      }),
    }).catch((error: unknown) => {
      throw withNextCommand(error, id);
    });
  });
  return id;
}

/** A script of a run cordons with our mark and without our knowing: a run that was cut short may have left its node so. */
const whatMayBeCordoned = (machine: MachineRecord) =>
  machine.facts.cordoned === null && holds(machine.conditions, "InCustomerCluster")
    ? { cordoned: { cluster: ownClusterOf(machine), node: "" } }
    : {};

/** The table knows which verbs there are, but no commands: those that help in this phase are explained. */
const withNextCommand = (error: unknown, id: MachineId): unknown =>
  error instanceof AppError && error.kind === "failed_precondition" && error.detail.next === undefined
    ? new AppError(error.kind, error.message, { ...error.detail, next: `millwright explain machine ${id}` })
    : error;

const LONGEST_COMMENT = 1_024;

function checkComment(comment: string): string {
  if (comment.length <= LONGEST_COMMENT && isPrintable(comment)) return comment;
  throw new AppError("invalid_argument", `comment: must have at most ${LONGEST_COMMENT} printable characters`, {
    field: "comment",
  });
}
