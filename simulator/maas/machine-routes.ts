import { ApiFailure, conflict, invalid } from "./api-failure.ts";
import { type ApiCall, type ApiReply, type ApiRoute, ok } from "./api-route.ts";
import type { Form } from "./form.ts";
import { machineJson } from "./machine-json.ts";
import type { MachineRecord } from "./machine-record.ts";
import { commission, mayRelease, OPERATIONS, release, USER } from "./operations.ts";
import type { Region } from "./region.ts";
import { ALLOCATED, COMMISSIONING, NEW, nameOf, READY } from "./statuses.ts";

const ALL = /^machines\/$/;
const ONE = /^machines\/([a-z0-9]{1,32})\/$/;
const HOSTNAME = /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;
const MAC = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/;

const found = ({ region, names: [id = ""] }: ApiCall): MachineRecord => region.machine(id);
const shown = (region: Region, machine: MachineRecord | null): ApiReply =>
  ok(machine === null ? null : machineJson(region, machine));

export const MACHINE_ROUTES: readonly ApiRoute[] = [
  { method: "GET", path: ALL, op: null, handle: list },
  { method: "POST", path: ALL, op: null, handle: create },
  { method: "POST", path: ALL, op: "allocate", handle: allocate },
  { method: "POST", path: ALL, op: "accept", handle: accept },
  { method: "POST", path: ALL, op: "release", handle: releaseAll },
  { method: "GET", path: ONE, op: null, handle: (call) => shown(call.region, found(call)) },
  { method: "PUT", path: ONE, op: null, handle: update },
  { method: "DELETE", path: ONE, op: null, handle: remove },
  { method: "GET", path: ONE, op: "power_parameters", handle: (call) => ok(found(call).powerParameters) },
  { method: "GET", path: ONE, op: "query_power_state", handle: (call) => ok({ state: found(call).power }) },
  ...Object.entries(OPERATIONS).map(([op, carryOut]) => ({
    ...{ method: "POST", path: ONE, op },
    handle: (call: ApiCall) => shown(call.region, carryOut(call.region, found(call), call.form)),
  })),
];

function list({ region, query }: ApiCall): ApiReply {
  const wants = (field: string, value: string) => !query.has(field) || query.all(field).includes(value);
  const machines = region
    .machines()
    .filter(
      (machine) =>
        wants("hostname", machine.hostname) &&
        wants("id", machine.systemId) &&
        wants("power_state", machine.power) &&
        wants("owner", machine.owner ?? "") &&
        (!query.has("status") || query.all("status").some((word) => isStatus(word, machine))) &&
        (!query.has("mac_address") ||
          machine.interfaces.some(({ mac }) => query.all("mac_address").some((asked) => asked.toLowerCase() === mac))),
    );
  return ok(machines.map((machine) => machineJson(region, machine)));
}

/** Callers write `ready`, `failed_deployment` or the number. */
const isStatus = (word: string, { status }: MachineRecord): boolean =>
  word === String(status) || word.toLowerCase().replaceAll("_", " ") === nameOf(status).toLowerCase();

function create({ region, form }: ApiCall): ApiReply {
  const macs = form.all("mac_addresses").map((mac) => mac.toLowerCase());
  const powerType = form.get("power_type") ?? "";
  for (const mac of macs) if (!MAC.test(mac)) throw invalid("mac_addresses", `'${mac}' is not a valid MAC address.`);
  if (powerType !== "ipmi" && macs.length === 0)
    throw invalid("mac_addresses", "At least one MAC address must be specified.");
  if (powerType !== "ipmi" && !form.has("architecture")) throw invalid("architecture", "This field is required.");
  const powerParameters = form.startingWith("power_parameters_");
  const host = region.findHost({ ipmiAddress: powerParameters.power_address, macs });
  const machine = region.add({
    host,
    hostname: hostnameIn(form) ?? `unnamed-${region.nextNumber()}`,
    interfaces: macs,
    ...{ powerType, powerParameters },
    ...(form.has("architecture") && { architecture: form.get("architecture") ?? "" }),
    description: form.get("description") ?? "",
  });
  return shown(region, form.isTrue("commission", true) ? commission(region, machine) : machine);
}

function hostnameIn(form: Form): string | undefined {
  const hostname = form.get("hostname");
  if (hostname === undefined || hostname === "") return undefined;
  if (!HOSTNAME.test(hostname)) throw invalid("hostname", `'${hostname}' is not a valid hostname.`);
  return hostname.toLowerCase();
}

function update(call: ApiCall): ApiReply {
  const { region, form } = call;
  const machine = found(call);
  if (machine.isLocked) throw conflict(`Machine ${machine.hostname} is locked.`);
  const hostname = hostnameIn(form) ?? machine.hostname;
  if (hostname !== machine.hostname && region.named(hostname) !== undefined)
    throw invalid("hostname", "Node with this Hostname already exists.");
  const powerParameters = { ...machine.powerParameters, ...form.startingWith("power_parameters_") };
  const host = region.findHost({ ipmiAddress: powerParameters.power_address, macs: [] });
  return shown(
    region,
    region.save({
      ...machine,
      hostname,
      hostId: machine.hostId ?? host?.id ?? null,
      powerType: form.get("power_type") ?? machine.powerType,
      powerParameters,
      description: form.get("description") ?? machine.description,
    }),
  );
}

function remove(call: ApiCall): ApiReply {
  const machine = found(call);
  if (machine.isLocked && !call.query.isTrue("force"))
    throw new ApiFailure(400, `Machine ${machine.hostname} is locked and cannot be deleted.`);
  call.region.remove(machine.systemId);
  return { status: 204, text: "" };
}

function allocate({ region, form }: ApiCall): ApiReply {
  const id = form.get("system_id");
  const name = form.get("name");
  const free = region
    .machines()
    .find(
      ({ status, systemId, hostname }) =>
        status === READY && (id === undefined || id === systemId) && (name === undefined || name === hostname),
    );
  if (free === undefined) throw conflict("No available machine matches constraints");
  const taken = region.save({ ...region.moved(free, ALLOCATED), owner: USER });
  return ok({ ...machineJson(region, taken), constraints_by_type: {} });
}

function accept({ region, form }: ApiCall): ApiReply {
  const machines = form.all("machines").map((id) => region.machine(id));
  const refused = machines.filter(({ status }) => status !== NEW && status !== READY && status !== COMMISSIONING);
  if (refused.length > 0)
    throw conflict(`Cannot accept node enlistment: ${refused.map(({ systemId }) => systemId).join(", ")} is not new.`);
  const accepted = machines.map((machine) => (machine.status === NEW ? commission(region, machine) : machine));
  return ok(accepted.map((machine) => machineJson(region, machine)));
}

/** All or none; answers with the ids of those that it began to release. */
function releaseAll({ region, form }: ApiCall): ApiReply {
  const machines = form.all("machines").map((id) => region.machine(id));
  const refused = machines.filter((machine) => !mayRelease(machine));
  if (refused.length > 0)
    throw conflict(
      `Machine(s) cannot be released in their current state: ${refused.map(({ systemId, status }) => `${systemId} ('${nameOf(status)}')`).join(", ")}.`,
    );
  const begun = machines.filter((machine) => release(region, machine, form) !== machine);
  return ok(begun.map(({ systemId }) => systemId));
}
