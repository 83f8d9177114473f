import type { MaasMachine } from "../../../../capabilities/fleet/maas-machine.ts";
import { StepFailure } from "../../../../kernel/errors.ts";
import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { type Acted, type ActingContext, defineStepOn, type ProbeReport, type Undone } from "../../../model/step.ts";
import { accountOfNode } from "./account-of-node.ts";
import { reachedBy } from "./maas-status.ts";
import {
  nameOf,
  type Onboarding,
  type OnboardingPayload,
  type OnOnboarding,
  parseOnboarding,
} from "./on-onboarding.ts";

/** The machine that was there before anything was done, and its name then; null: there was none, so that the stage creates it. */
type Evidence = { readonly found: string | null; readonly hostname?: string };
type Receipt = { readonly systemId: string; readonly created: boolean };

/**
 * Binds the node to exactly one machine of MAAS: the one that it was bound to, the one of its name or of its MAC addresses, the one New
 * machine where the profile claims that, or a new one. Cancelled, it deletes only a machine that it created.
 */
export const createOrFindInMaas = defineStepOn<OnOnboarding>()({
  kind: "create_or_find_in_maas",
  needs: [],
  defaults: { timeout: seconds(120), maxRetries: 5 },
  parse: parseOnboarding,

  async before(context): Promise<Evidence> {
    const machine = await findMachineOfNode(context);
    return machine === undefined ? { found: null } : { found: machine.systemId, hostname: machine.hostname };
  },

  async act(context): Promise<Acted<Receipt>> {
    const { maas, target: node, call, evidence } = context;
    const { maas: region, target } = await maas();
    const power = await accountOfNode(context);
    if (evidence.found !== null) {
      await refuseTaken(context, evidence.found);
      await region.takeOver(target, evidence.found, { hostname: node.hostname, power }, call);
      return { receipt: { systemId: evidence.found, created: false } };
    }
    const { systemId } = await region.createMachine(target, { hostname: node.hostname, power }, call);
    return { receipt: { systemId, created: true } };
  },
  showsOfReceipt: ["systemId", "created"],

  async probe(context): Promise<ProbeReport> {
    const { evidence, receipt } = context;
    if (receipt !== null) {
      const machine = await findById(context, receipt.systemId);
      if (machine === undefined) throw gone(context, receipt.systemId);
      if (machine.hostname !== context.target.hostname) throw takenByAnother(context, machine);
      // Who claims the one New machine at the same moment may have been quicker.
      return bound(await checked(context, machine));
    }
    const machine = await findMachineOfNode(context);
    if (machine === undefined) return { state: "not_done", message: "MAAS has no machine of the node" };
    if (isSetUp(context, machine)) return bound(machine);
    if (evidence.found !== null) return { state: "not_done", message: "MAAS does not have its name and its power yet" };
    throw new StepFailure("changed_meanwhile", `somebody else has just given MAAS a machine ${machine.hostname}`);
  },

  async undo(context): Promise<Undone | undefined> {
    const { maas, call, evidence, receipt, target: node } = context;
    const isOurs = receipt?.created ?? evidence.found === null;
    const systemId = receipt?.systemId ?? node.facts.systemId ?? (isOurs ? await findMade(context) : null);
    if (!isOurs || systemId === null) return { facts: { systemId: null } };
    const { maas: region, target } = await maas({ evenDisabled: true });
    const machine = await region.findMachine(target, systemId, call);
    if (machine === undefined) return { facts: { systemId: null } };
    if (reachedBy(machine) === "moving") return { goesOn: `MAAS works on ${systemId}: ${machine.statusName}` };
    await region.deleteMachine(target, systemId, call);
    return { facts: { systemId: null } };
  },
  residue: () => "the machine that was created in MAAS",
});

type Acting = ActingContext<OnboardingPayload, Evidence, never, never, Receipt, OnOnboarding>;
type ActingOn = Omit<Acting, "receipt">;

/** Another node may have claimed it since it was found: it has that node's name then. */
async function refuseTaken(context: ActingOn, systemId: string): Promise<void> {
  const machine = await findById(context, systemId);
  if (machine === undefined) throw gone(context, systemId);
  const { hostname = machine.hostname } = context.evidence;
  if (machine.hostname !== hostname && machine.hostname !== context.target.hostname)
    throw takenByAnother(context, machine);
  await checked(context, machine);
}

/**
 * The machine that was ordered, and whose answer was lost: MAAS had none of the name before, and has one now that nothing was done with.
 * Null: it was not created.
 */
async function findMade(context: ActingOn): Promise<string | null> {
  const { maas, target: node, call, otherNodeOn } = context;
  const { maas: region, target } = await maas({ evenDisabled: true });
  const machines = await region.listMachines(target, { hostname: node.hostname }, call);
  const [made, ...others] = machines.filter((machine) => machine.status === NEW && isSetUp(context, machine));
  if (made === undefined || others.length > 0 || (await otherNodeOn(made.systemId)) !== undefined) return null;
  return made.systemId;
}

const isSetUp = ({ target: { hostname } }: Onboarding, machine: MaasMachine): boolean =>
  machine.hostname === hostname && machine.powerType !== null && machine.powerType !== "";

const bound = ({ systemId, statusName }: MaasMachine): ProbeReport => ({
  state: "done",
  message: `machine ${systemId} (${statusName})`,
  facts: { systemId },
});

const takenByAnother = ({ target: node }: Onboarding, { systemId, hostname }: MaasMachine): StepFailure =>
  failedAs(
    "conflicting_candidates",
    `machine ${systemId} of MAAS was taken for ${nameOf(node)}, and is called ${hostname} now`,
    {
      name: node.hostname,
      shown: hostname,
    },
  );

const gone = ({ target }: Onboarding, systemId: string): StepFailure =>
  failedAs(
    "machine_deleted_in_maas",
    `machine ${systemId}, which ${nameOf(target)} was just bound to, is gone from MAAS`,
    {
      name: systemId,
    },
  );

/** As much of a node and its job as the search for its machine goes by: there need not be either yet. */
export interface Search extends Pick<Onboarding, "maas" | "call" | "knownIdentity" | "otherNodeOn"> {
  readonly target: { readonly hostname: string; readonly facts: Pick<Onboarding["target"]["facts"], "systemId"> };
  readonly payload: Pick<Onboarding["payload"], "policy">;
}

async function findById({ maas, call }: Search, systemId: string): Promise<MaasMachine | undefined> {
  const { maas: region, target } = await maas();
  return region.findMachine(target, systemId, call);
}

/**
 * The one machine that is the node; undefined where MAAS has none. One that it was bound to and that is gone is looked for again: nobody comes
 * back to this stage but at the wish of a person.
 */
export async function findMachineOfNode(context: Search): Promise<MaasMachine | undefined> {
  const { target: node } = context;
  const known = node.facts.systemId === null ? undefined : await findById(context, node.facts.systemId);
  if (known !== undefined) return checked(context, known);
  const candidates = await listCandidates(context);
  const [first, ...others] = candidates;
  if (others.length > 0) {
    const shown = candidates.map(({ hostname, systemId }) => `${hostname} (${systemId})`).join(", ");
    throw failedAs(
      "conflicting_candidates",
      `${candidates.length} machines of MAAS could be ${nameOf(node)}: ${shown}`,
      {
        name: node.hostname,
        shown,
      },
    );
  }
  return first && checked(context, first);
}

/** By name and by MAC address; where neither finds any, the New machines, if the profile claims one. */
async function listCandidates({
  maas,
  target: node,
  call,
  knownIdentity,
  payload,
}: Search): Promise<readonly MaasMachine[]> {
  const { maas: region, target } = await maas();
  const { macs } = await knownIdentity();
  const lists = await Promise.all([
    region.listMachines(target, { hostname: node.hostname }, call),
    ...macs.map((mac) => region.listMachines(target, { mac }, call)),
  ]);
  const found = new Map(lists.flat().map((machine) => [machine.systemId, machine]));
  if (found.size > 0 || !payload.policy.auto_claim_single_new_machine) return [...found.values()];
  const all = await region.listMachines(target, {}, call);
  return all.filter((machine) => machine.status === NEW && !machine.isLocked);
}
const NEW = 0;

/** Whether it may be the node: no other node has it, and its serial number is the one on record. */
async function checked(
  { knownIdentity, otherNodeOn, target: node }: Search,
  machine: MaasMachine,
): Promise<MaasMachine> {
  const { systemId, serial, hostname } = machine;
  const other = await otherNodeOn(systemId);
  if (other !== undefined)
    throw failedAs("identity_mismatch", `machine ${hostname} (${systemId}) of MAAS belongs to node ${other} already`, {
      name: systemId,
      expected: nameOf(node),
      shown: other,
    });
  const known = await knownIdentity();
  if (known.serial !== null && serial !== null && known.serial.toLowerCase() !== serial.toLowerCase())
    throw failedAs(
      "identity_mismatch",
      `machine ${hostname} (${systemId}) of MAAS has the serial number ${serial}, and ${nameOf(node)} has ${known.serial}`,
      { name: systemId, expected: known.serial, shown: serial },
    );
  return machine;
}
