import { conflict, invalid, notFound } from "./api-failure.ts";
import { type ApiCall, type ApiReply, type ApiRoute, ok } from "./api-route.ts";
import { disksOf, SUBNETS } from "./hardware.ts";
import { blockDevicesJson, interfaceJson } from "./machine-json.ts";
import type { InterfaceRecord, LinkMode, MachineRecord } from "./machine-record.ts";
import * as status from "./statuses.ts";

const DISKS = /^nodes\/([a-z0-9]{1,32})\/blockdevices\/$/;
const DISK = /^nodes\/([a-z0-9]{1,32})\/blockdevices\/(\d{1,9})\/$/;
const PORTS = /^nodes\/([a-z0-9]{1,32})\/interfaces\/$/;
const PORT = /^nodes\/([a-z0-9]{1,32})\/interfaces\/(\d{1,9})\/$/;
const RESULTS = /^nodes\/([a-z0-9]{1,32})\/results\/$/;

const found = ({ region, names: [id = ""] }: ApiCall): MachineRecord => region.machine(id);

/** The disks and ports of a machine, and what its scripts said. */
export const NODE_ROUTES: readonly ApiRoute[] = [
  { method: "GET", path: DISKS, op: null, handle: (call) => ok(blockDevicesJson(call.region, found(call))) },
  { method: "GET", path: DISK, op: null, handle: (call) => ok(diskShown(call)) },
  { method: "POST", path: DISK, op: "set_boot_disk", handle: setBootDisk },
  {
    ...{ method: "GET", path: PORTS, op: null },
    handle: (call) => ok(found(call).interfaces.map((port) => interfaceJson(found(call).systemId, port))),
  },
  { method: "GET", path: PORT, op: null, handle: (call) => ok(interfaceJson(found(call).systemId, portOf(call))) },
  { method: "PUT", path: PORT, op: null, handle: updatePort },
  { method: "POST", path: PORT, op: "link_subnet", handle: linkSubnet },
  { method: "POST", path: PORT, op: "unlink_subnet", handle: unlinkSubnet },
  { method: "POST", path: PORT, op: "disconnect", handle: (call) => changed(call, { links: [] }) },
  { method: "GET", path: RESULTS, op: null, handle: results },
];

function diskShown(call: ApiCall) {
  const [, id] = call.names;
  const disk = blockDevicesJson(call.region, found(call)).find((each) => String(each.id) === id);
  if (disk === undefined) throw notFound("BlockDevice");
  return disk;
}

function setBootDisk(call: ApiCall): ApiReply {
  const machine = found(call);
  const disk = diskShown(call);
  const { storage } = machine;
  if (machine.status !== status.READY || storage === null)
    throw conflict("Cannot set as boot disk because the node is not Ready.");
  const host = call.region.hostOf(machine);
  if (host === undefined || !disksOf(host, storage.hasBossDisk).some(({ id }) => id === disk.id))
    throw notFound("BlockDevice");
  call.region.save({ ...machine, storage: { ...storage, bootDisk: disk.id } });
  return { status: 200, text: "OK" };
}

function portOf(call: ApiCall): InterfaceRecord {
  const port = found(call).interfaces.find(({ id }) => String(id) === call.names[1]);
  if (port === undefined) throw notFound("Interface");
  return port;
}

const EDITABLE: readonly status.MaasStatus[] = [status.NEW, status.READY, 22, status.ALLOCATED, status.BROKEN];

function changed(call: ApiCall, change: Partial<InterfaceRecord>): ApiReply {
  const machine = found(call);
  const port = { ...portOf(call), ...change };
  if (!EDITABLE.includes(machine.status))
    throw conflict("Cannot configure interface because the node is not New, Ready, Allocated, or Broken.");
  const interfaces = machine.interfaces.map((each) => (each.id === port.id ? port : each));
  call.region.save({ ...machine, interfaces });
  return ok(interfaceJson(machine.systemId, port));
}

function updatePort(call: ApiCall): ApiReply {
  const { form } = call;
  const port = portOf(call);
  const mtu = form.get("mtu");
  if (mtu !== undefined && !/^\d{3,5}$/.test(mtu)) throw invalid("mtu", "Enter a whole number.");
  return changed(call, {
    name: form.get("name") ?? port.name,
    mtu: mtu === undefined ? port.mtu : Number(mtu),
    tags: form.has("tags") ? form.all("tags").flatMap((tags) => tags.split(",")) : port.tags,
  });
}

const MODES: Readonly<Record<string, LinkMode>> = { AUTO: "auto", DHCP: "dhcp", STATIC: "static", LINK_UP: "link_up" };

function linkSubnet(call: ApiCall): ApiReply {
  const { form, region } = call;
  const port = portOf(call);
  const mode = MODES[(form.get("mode") ?? "").toUpperCase()];
  if (mode === undefined) throw invalid("mode", "Select a valid choice: AUTO, DHCP, STATIC, LINK_UP.");
  const asked = form.get("subnet");
  const subnet = SUBNETS.find(({ id, cidr, name }) => [String(id), cidr, name].includes(asked ?? ""));
  if (subnet === undefined && (mode === "auto" || mode === "static"))
    throw invalid("subnet", "This field is required.");
  if (subnet !== undefined && region.goesWrong("link_refused", found(call)))
    throw invalid("subnet", `Select a valid choice. ${subnet.cidr} is not on the VLAN of this interface.`);
  const ipAddress = mode === "static" ? (form.get("ip_address") ?? null) : null;
  if (ipAddress !== null && isTaken(call, ipAddress))
    throw invalid("ip_address", `IP address is already in use: ${ipAddress}.`);
  const link = { id: region.nextNumber(), mode, subnet: subnet?.id ?? null, ipAddress };
  // A port that is only up is up no more once it has a network.
  const kept = port.links.filter((each) => each.mode !== "link_up" && !form.isTrue("force"));
  return changed(call, { links: [...kept, link] });
}

const isTaken = ({ region, names }: ApiCall, address: string): boolean =>
  region
    .machines()
    .some((machine) =>
      machine.interfaces.some(
        ({ id, links }) =>
          !(machine.systemId === names[0] && String(id) === names[1]) &&
          links.some(({ ipAddress }) => ipAddress === address),
      ),
    );

function unlinkSubnet(call: ApiCall): ApiReply {
  const port = portOf(call);
  const id = call.form.get("id");
  if (!port.links.some((link) => String(link.id) === id))
    throw invalid("id", `Select a valid choice. ${id ?? "That"} is not one of the available choices.`);
  const kept = port.links.filter((link) => String(link.id) !== id);
  const up = { id: call.region.nextNumber(), mode: "link_up" as const, subnet: null, ipAddress: null };
  return changed(call, { links: kept.length > 0 ? kept : [up] });
}

/** Of installations alone: what other scripts say, nobody asks for. */
function results(call: ApiCall): ApiReply {
  const { systemId, installation } = found(call);
  const type = call.query.get("type");
  if (installation === null || (type !== undefined && type !== "installation")) return ok([]);
  const [code, word] = installation.ok ? [2, "Passed"] : [3, "Failed"];
  const output = Buffer.from(installation.output).toString("base64");
  return ok([
    {
      ...{ id: 1, system_id: systemId, type: 1, type_name: "Installation", status: code, status_name: word },
      results: [
        {
          ...{ id: 1, name: "/tmp/install.log", status: code, status_name: word, exit_status: installation.ok ? 0 : 1 },
          ...(call.query.isTrue("include_output") && { output, combined: output }),
        },
      ],
    },
  ]);
}
