import { randomBytes } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { InstallState } from "../../lifecycles/install/install.ts";
import { holds } from "../../lifecycles/machine/conditions.ts";
import { loadInstalls } from "../../store/install/installs.ts";
import { create } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { findOwners, type Identity, replaceIdentities } from "../../store/machine/identities.ts";
import { listMachines, type MachineRecord } from "../../store/machine/machines.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { storedSecret } from "../call/given-secret.ts";
import { doneBy } from "../call/initiator.ts";
import { expandRoles } from "../call/roles.ts";
import { createHostReprovision, hostReprovisionKey } from "../host-reprovision/host-reprovisions.ts";
import { putCredentials } from "../machine/credentials.ts";
import { checkSpec, type SpecInput } from "../machine/input.ts";
import { MACHINE_KIND, machineKey } from "../machine/machines.ts";
import type { CheckedIdentity, CheckedNode } from "./node-input.ts";
import { refuseTwin } from "./node-twins.ts";

/** Where a BMC usually listens, whatever it speaks: the address is what tells machines apart here. */
const USUAL_PORTS = [443, 623, 80];
const bmcsAt = (address: string): Identity[] =>
  USUAL_PORTS.map((port) => ({ kind: "bmc", value: `${address.toLowerCase()} ${port}` }));

/** The node with its account as it is put on record, where the caller may give one. */
export async function withAccount(deps: ServiceDeps, caller: Caller, node: CheckedNode, at = ""): Promise<CheckedNode> {
  checkGiver(caller, node);
  if (node.account === null) return node;
  const password = await storedSecret(deps, caller, node.account.password, `${at}bmc_password`);
  return { ...node, account: { ...node.account, password } };
}

/** Who gives an account may also give it to the machine. */
export function checkGiver({ name, roles }: Caller, { account }: Pick<CheckedNode, "account">): void {
  if (account === null || expandRoles(roles).has("admin")) return;
  const who = name === null ? "the caller" : `'${name}'`;
  throw new AppError(
    "permission_denied",
    `${who} (role ${roles.join(", ")}) may not give the account of a management controller (bmc_username); it requires the role admin`,
    {
      field: "bmc_username",
      next: "leave out the account, and ask an administrator for millwright machine set-credentials",
    },
  );
}

/**
 * The machine of the inventory that the node is, with the account that the caller gives for its BMC. The caller holds the lock of the
 * address.
 */
export async function machineOfNode(tx: Transaction, deps: ServiceDeps, caller: Caller, node: CheckedNode) {
  const id = await findOrRegisterMachine(tx, deps, caller, node);
  await refuseTwin(tx, { ...node, machineId: id });
  if (node.account === null) return id;
  const [machine] = await listMachines(tx, { ids: [id] });
  if (!machine) throw new Error(`machine ${id} was written and is not there`);
  await putCredentials(tx, deps, caller, { machine, bmc: node.account, ssh: null });
  return id;
}

/**
 * The machine of the inventory that the node is: the one with the BMC at its address, or a new one. The caller holds the lock of the
 * address, so that nobody who onboards registers a second one meanwhile.
 */
async function findOrRegisterMachine(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  node: CheckedNode,
): Promise<string> {
  const known = await findMachine(tx, node);
  if (known === undefined) return register(tx, deps, caller, node);
  await lockThings(tx, [machineKey(known)]);
  return (await checkMachineOf(tx, node, known)).id;
}

/** The machine of the inventory that the node would be, which nobody but `checkMachineOf` has looked at; undefined: none yet. */
export async function findMachine(db: Queryable, { ipmiIp }: Pick<CheckedNode, "ipmiIp">): Promise<string | undefined> {
  if (ipmiIp === null) return undefined;
  const owners = [...new Set((await findOwners(db, bmcsAt(ipmiIp))).map(({ owner }) => owner))];
  if (owners.length <= 1) return owners[0];
  throw new AppError(
    "failed_precondition",
    `ipmi_ip: ${ipmiIp} is the BMC of machines ${owners.join(" and ")}; correct the record of the wrong one`,
    { field: "ipmi_ip", next: `millwright machine show ${owners[0]}` },
  );
}

/** Whether the node may be onboarded on the machine. Only for who holds its lock it stays so. */
export async function checkMachineOf(db: Queryable, node: CheckedIdentity, id: string): Promise<MachineRecord> {
  const [machine] = await listMachines(db, { ids: [id] });
  if (!machine) throw new AppError("conflict", `machine ${id} was removed at the same moment; call again`);
  if (node.mode === "maas" && machine.spec.provider !== "maas") throw otherProvider(machine, node);
  await checkMachine(db, machine);
  return machine;
}

function otherProvider({ id, spec }: MachineRecord, { ipmiIp }: CheckedIdentity): AppError {
  return new AppError(
    "failed_precondition",
    `machine ${id} has the BMC ${ipmiIp} and is worked on by provider ${spec.provider}: nobody but MAAS may touch the BMC of a node that MAAS brings up`,
    { field: "ipmi_ip", next: `millwright machine update ${id} --provider maas` },
  );
}

const PHASES: ReadonlySet<string> = new Set(["FACTORY_READY", "READY"]);
/** Our own network boot has nothing to do with the machine, or not any more. */
const INSTALLS: ReadonlySet<InstallState> = new Set(["discovered", "retired"]);

async function checkMachine(db: Queryable, machine: MachineRecord): Promise<void> {
  const { id, state, activeRunId, conditions, facts } = machine;
  const refuse = (why: string, next: string) =>
    new AppError("failed_precondition", `machine ${id} ${why}`, { field: "ipmi_ip", next });
  if (!PHASES.has(state.name))
    throw refuse(
      `is ${state.name}: only a machine that is FACTORY_READY or READY is onboarded`,
      `millwright machine show ${id}`,
    );
  if (activeRunId !== null)
    throw refuse(`has an active run, ${activeRunId}: wait for it or cancel it`, `millwright run show ${activeRunId}`);
  if (facts.joinedCluster !== null || holds(conditions, "InCustomerCluster"))
    throw refuse(
      `is a node of ${facts.joinedCluster ?? "a cluster"}: it must leave that first`,
      `millwright machine show ${id}`,
    );
  const [install] = (await loadInstalls(db, [id])).things;
  if (install && !INSTALLS.has(install.state.name as InstallState))
    throw refuse(`has an install that is ${install.state.name}: retire that first`, `millwright node show ${id}`);
}

const SPEC: SpecInput = {
  ...{
    provider: "",
    serial: "",
    macAddresses: [],
    rack: "",
    slot: "",
    location: "",
    customerId: "",
    targetClusterRef: "",
  },
  ...{ sshEndpoint: "", sshHostKey: "", jumpHosts: [], bmcEndpoint: "", bmcProtocol: "", bmcTlsTrust: "" },
};

/** As the machine of the node would be registered. */
export function specOfNode({ providers }: ServiceDeps, { ipmiIp, mode }: Pick<CheckedNode, "ipmiIp" | "mode">) {
  const bmc =
    ipmiIp === null ? {} : { bmcEndpoint: ipmiIp.includes(":") ? `[${ipmiIp}]` : ipmiIp, bmcProtocol: "ipmi" };
  return checkSpec({ ...SPEC, ...bmc, provider: mode === "maas" ? "maas" : "" }, providers);
}

async function register(tx: Transaction, deps: ServiceDeps, caller: Caller, node: CheckedNode): Promise<string> {
  const { hostname, ipmiIp } = node;
  const { row, identities } = specOfNode(deps, node);
  const id = `m-${randomBytes(8).toString("hex")}`;
  await lockThings(tx, [machineKey(id), hostReprovisionKey(id)]);
  const labelled: JsonObject = { ...row, labels: { hostname } };
  await create(tx, storeOf(deps.stores, MACHINE_KIND), { id, row: labelled, ...doneBy(caller) });
  await createHostReprovision(tx, deps, caller, id);
  const [taken] = await replaceIdentities(tx, id, identities);
  if (!taken) return id;
  throw new AppError("conflict", `machine ${taken.owner} took the BMC ${ipmiIp} at the same moment; call again`);
}
