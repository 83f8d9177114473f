import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { AppError } from "../../kernel/errors.ts";
import { type MachineId, parseMachineId } from "../../kernel/ids.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { absorbTwins, findTwins, locksToAbsorb } from "../../store/install/twins.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { list as listClaims } from "../../store/lifecycle/claims/claims.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { create } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { replaceIdentities, type TakenIdentity } from "../../store/machine/identities.ts";
import { listMachines, type MachineRecord, type SpecRow } from "../../store/machine/machines.ts";
import { retryOnConflict, type Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { expandRoles } from "../call/roles.ts";
import { refuseHeld, refuseToUse } from "../device/held.ts";
import { mentionRacks, rackKeys } from "../device/racks.ts";
import { createHostReprovision, hostReprovisionKey } from "../host-reprovision/host-reprovisions.ts";
import { type CheckedSpec, checkLabels, checkSpec, type SpecInput } from "./input.ts";
import { moveSsh, outdatedBy } from "./outdated.ts";

export type { SpecInput } from "./input.ts";

export const MACHINE_KIND = "machine";
export const machineKey = (id: string) => ({ kind: MACHINE_KIND, id });

export interface MachineInput {
  /** Undefined: the server gives one. */
  readonly id: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** Undefined: a machine on record keeps its own. */
  readonly spec: SpecInput | undefined;
}

const NOTHING_SAID: SpecInput = {
  provider: "",
  serial: "",
  macAddresses: [],
  rack: "",
  slot: "",
  location: "",
  customerId: "",
  targetClusterRef: "",
  sshEndpoint: "",
  sshHostKey: "",
  jumpHosts: [],
  bmcEndpoint: "",
  bmcProtocol: "",
  bmcTlsTrust: "",
};

/** Puts a machine on record; of one that is there, spec and labels are replaced, and its status stays. */
export async function registerMachine(deps: ServiceDeps, caller: Caller, input: MachineInput): Promise<MachineId> {
  const given = input.id === undefined ? undefined : parseMachineId(input.id, "machine.machine_id");
  const labels = checkLabels(input.labels);
  const spec = checkSpec(input.spec ?? NOTHING_SAID, deps.providers);
  const id = given ?? idFor(spec);
  // Who exchanges identities with another machine at the same moment may get in each other's way.
  await retryOnConflict(() =>
    deps.db.transaction(async (tx) => {
      const twins = await lockWithTwins(tx, id, spec);
      const [known] = await listMachines(tx, { ids: [id] });
      if (known) await replace(tx, deps, caller, known, { labels, twins, ...(input.spec && { spec }) });
      else {
        const row: JsonObject = { ...spec.row, labels };
        await create(tx, storeOf(deps.stores, MACHINE_KIND), { id, row, ...doneBy(caller) });
        await mentionRacks(tx, deps, caller, { named: [spec.row.rack], left: [] });
        await createHostReprovision(tx, deps, caller, id);
        await absorbTwins(tx, deps.stores, { machineId: id, twins, ...doneBy(caller) });
        await takeIdentities(tx, id, spec);
      }
    }),
  );
  return id;
}

/** By its first MAC address where it has one, so that registering it again is harmless. */
function idFor({ row }: CheckedSpec): MachineId {
  const [mac] = row.macs;
  const word = mac === undefined ? randomBytes(8).toString("hex") : mac.replaceAll(":", "");
  return parseMachineId(`m-${word}`, "machine.machine_id");
}

/** Replaces the spec when one is given, and the labels when there are any. */
export async function updateMachine(deps: ServiceDeps, caller: Caller, input: MachineInput): Promise<MachineId> {
  const id = parseMachineId(input.id ?? "", "machine.machine_id");
  const labels = checkLabels(input.labels);
  const spec = input.spec && checkSpec(input.spec, deps.providers);
  await retryOnConflict(() =>
    deps.db.transaction(async (tx) => {
      const twins = await lockWithTwins(tx, id, spec);
      const [known] = await listMachines(tx, { ids: [id] });
      if (!known) throw unknownMachine(id);
      await replace(tx, deps, caller, known, {
        labels: Object.keys(labels).length === 0 ? known.labels : labels,
        twins,
        ...(spec && { spec }),
      });
    }),
  );
  return id;
}

/** Locks the machine, and those that only a boot has put on record under one of its MAC addresses. Returns the latter: they become one with it. */
async function lockWithTwins(tx: Transaction, id: string, spec: CheckedSpec | undefined): Promise<readonly string[]> {
  const find = () => findTwins(tx, id, spec?.row.macs ?? []);
  const before = await find();
  await lockThings(tx, [
    machineKey(id),
    hostReprovisionKey(id),
    ...locksToAbsorb(id, before),
    ...rackKeys([spec?.row.rack ?? null]),
  ]);
  // Under the lock: somebody may have approved one.
  return before.length === 0 ? [] : (await find()).filter((twin) => before.includes(twin));
}

interface Replacing {
  readonly labels: Readonly<Record<string, string>>;
  readonly spec?: CheckedSpec;
  readonly twins: readonly string[];
}

async function replace(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  machine: MachineRecord,
  { labels, spec, twins }: Replacing,
): Promise<void> {
  refuseRetired(machine);
  const before = rowOf(machine);
  const after: SpecRow = { ...before, ...spec?.row, labels: { ...labels } };
  const changed = Object.keys(after).filter(
    (column) => !isDeepStrictEqual(after[column as keyof SpecRow], before[column as keyof SpecRow]),
  );
  if (changed.length === 0) return;
  refuseToForgetHostKey(caller, machine, after);
  await refuseNewEndpoints(tx, machine, changed);
  if (changed.includes("rack"))
    await refuseHeld(tx, deps, [machineKey(machine.id)], {
      action: "moved to another rack",
      field: "machine.spec.rack",
    });
  if (changed.includes("customer_id"))
    await refuseToUse(
      tx,
      deps,
      { machine: machineKey(machine.id), rackId: after.rack },
      { action: "assigned", field: "machine.spec.customer_id" },
    );
  await absorbTwins(tx, deps.stores, { machineId: machine.id, twins, ...doneBy(caller) });
  if (spec) await takeIdentities(tx, machine.id, spec);
  const facts = { ...outdatedBy(machine, changed), ...(await moveSsh(tx, machine, after, changed)) };
  if (Object.keys(facts).length > 0)
    await commitOrRefuse(tx, deps.stores, [{ kind: MACHINE_KIND, thing: machine, facts, ...doneBy(caller) }]);
  const set = Object.fromEntries(Object.entries(after).filter(([column]) => changed.includes(column))) as JsonObject;
  await recordChange(tx, storeOf(deps.stores, MACHINE_KIND), {
    id: machine.id,
    type: "spec_changed",
    ...doneBy(caller),
    data: set,
    // Nothing that decides about a machine reads its labels, and others may write them often.
    touchesBasis: changed.some((column) => column !== "labels"),
    set,
  });
  if (RACK_READS.some((column) => changed.includes(column)))
    await mentionRacks(tx, deps, caller, { named: [after.rack], left: [before.rack] });
}

/** What a rack reads of its machines besides their states: where they stand, and who uses them. */
const RACK_READS = ["rack", "slot", "customer_id"];

/** What its row says of it. */
function rowOf({ labels, spec, given }: MachineRecord): SpecRow {
  return {
    labels: { ...labels },
    provider: spec.provider,
    serial: spec.serial,
    macs: [...spec.macs],
    rack: spec.rack,
    slot: spec.slot,
    location: spec.location,
    customer_id: spec.customerId,
    target_cluster: spec.targetCluster,
    ssh_endpoint: given.ssh === "" ? null : given.ssh,
    ssh_host_key: given.sshHostKey,
    jump_hosts: given.jumpHosts,
    bmc_endpoint: given.bmc === "" ? null : given.bmc,
    bmc_protocol: given.bmcProtocol,
    bmc_trust: given.bmcTrust,
  };
}

const ENDPOINT_COLUMNS = new Map([
  ["provider", "provider"],
  ["ssh_endpoint", "ssh_endpoint"],
  ["ssh_host_key", "ssh_host_key"],
  ["jump_hosts", "jump_hosts"],
  ["bmc_endpoint", "bmc_endpoint"],
  ["bmc_protocol", "bmc_protocol"],
  ["bmc_trust", "bmc_tls_trust"],
]);

/** Another key may be named by whoever may change the machine. Without any, the next connection would trust whoever answers. */
function refuseToForgetHostKey({ roles }: Caller, { id, given }: MachineRecord, after: SpecRow): void {
  if (given.sshHostKey === null || after.ssh_host_key !== null || expandRoles(roles).has("admin")) return;
  throw new AppError(
    "permission_denied",
    "machine.spec.ssh_host_key: dropping the host key that must be shown requires role admin; name the new one instead",
    { field: "machine.spec.ssh_host_key", next: `millwright machine update ${id} --ssh-host-key SHA256:<fingerprint>` },
  );
}

/** Who works on a machine must not find another one behind the same name. */
async function refuseNewEndpoints(tx: Transaction, machine: MachineRecord, changed: readonly string[]): Promise<void> {
  const column = changed.find((each) => ENDPOINT_COLUMNS.has(each));
  if (column === undefined) return;
  const holder = await findHolder(tx, machine);
  if (holder === undefined) return;
  const field = `machine.spec.${ENDPOINT_COLUMNS.get(column)}`;
  throw new AppError(
    "failed_precondition",
    `${field}: cannot change while ${holder} works on machine ${machine.id}; wait until ${holder} has ended, or cancel it`,
    { field },
  );
}

async function findHolder(tx: Transaction, { id, activeRunId }: MachineRecord): Promise<string | undefined> {
  if (activeRunId !== null) return `run ${activeRunId}`;
  const claims = await listClaims(tx, [machineKey(id)]);
  const holder = claims.find(({ grantedAt }) => grantedAt !== null)?.holder;
  return holder && `${holder.kind} ${holder.id}`;
}

async function takeIdentities(tx: Transaction, id: string, { identities, row }: CheckedSpec): Promise<void> {
  const [taken] = await replaceIdentities(tx, id, identities);
  if (taken) throw alreadyOwned(taken, row);
}

function alreadyOwned({ kind, value, owner }: TakenIdentity, row: CheckedSpec["row"]): AppError {
  const [field, what] = {
    mac: ["machine.spec.mac_addresses", `the MAC address ${value}`],
    serial: ["machine.spec.serial", `the serial ${value}`],
    bmc: ["machine.spec.bmc_endpoint", `the BMC ${row.bmc_endpoint}`],
  }[kind] as [string, string];
  return new AppError("already_exists", `${field}: ${what} belongs to machine ${owner}`, {
    field,
    next: `millwright machine show ${owner}`,
  });
}

export function refuseRetired({ id, state }: MachineRecord): void {
  if (state.name !== "RETIRED") return;
  throw new AppError(
    "failed_precondition",
    `machine ${id} is RETIRED and cannot return; register the hardware under another machine_id`,
    { next: "millwright machine register --id <another id>" },
  );
}

export async function getMachine(deps: ServiceDeps, machineId: string): Promise<MachineRecord> {
  const id = parseMachineId(machineId, "machine_id");
  const [machine] = await listMachines(deps.db, { ids: [id] });
  if (!machine) throw unknownMachine(id);
  return machine;
}

export const unknownMachine = (id: string): AppError =>
  new AppError("not_found", `machine ${id} does not exist`, { field: "machine_id", next: "millwright machine list" });
