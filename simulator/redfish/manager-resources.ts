import type { DeviceEvent, ManagedDevice } from "../devices/managed-device.ts";
import { readActionParameter } from "./action-body.ts";
import { type Answer, noContent, ok, refuse } from "./answer.ts";
import { collection, link, type Resource, type ResourceCall } from "./resources.ts";

const MANAGERS = "/redfish/v1/Managers";
const MANAGER = `${MANAGERS}/bmc`;
const ENTRIES = `${MANAGER}/LogServices/EventLog/Entries`;
const RESET_TYPES = ["GracefulRestart", "ForceRestart"] as const;

export interface ManagerOptions<D extends ManagedDevice> {
  readonly name: string;
  readonly chassis: string;
  /** What this kind of device's controller shows beyond what all of them do. */
  readonly more?: (call: ResourceCall<D>) => Readonly<Record<string, unknown>>;
  readonly links?: Readonly<Record<string, unknown>>;
  /** Ports that it reports beside its own, by their ids. */
  readonly ports?: Readonly<Record<string, { readonly name: string; readonly of: (device: D) => Port }>>;
}

interface Port {
  readonly mac: string;
  readonly address: string;
}

/** The management controller: its firmware, its network port, its log, its restart. */
export function managerResources<D extends ManagedDevice>(options: ManagerOptions<D>): [string, Resource<D>][] {
  const ports = { eth0: { name: "Management port", of: ({ spec }: D): Port => spec }, ...options.ports };
  return [
    [MANAGERS, { GET: ({ path }) => ok(collection(path, "ManagerCollection", "Managers", [MANAGER])) }],
    [MANAGER, { GET: (call) => ok(manager(call, options)) }],
    [`${MANAGER}/Actions/Manager.Reset`, { POST: resetManager }],
    [
      `${MANAGER}/EthernetInterfaces`,
      {
        GET: ({ path }) =>
          ok(
            collection(
              path,
              "EthernetInterfaceCollection",
              "Network interfaces",
              Object.keys(ports).map((id) => `${path}/${id}`),
            ),
          ),
      },
    ],
    ...Object.entries(ports).map(([id, { name, of }]): [string, Resource<D>] => [
      `${MANAGER}/EthernetInterfaces/${id}`,
      { GET: ({ path, device }) => ok(ethernetInterface(path, { id, name, ...of(device) })) },
    ]),
    [
      `${MANAGER}/LogServices`,
      { GET: ({ path }) => ok(collection(path, "LogServiceCollection", "Log services", [`${path}/EventLog`])) },
    ],
    [`${MANAGER}/LogServices/EventLog`, { GET: ({ path }) => ok(eventLog(path)) }],
    [ENTRIES, { GET: listEntries }],
  ];
}

/** Entries come and go, so they are found by their collection. */
export const logEntryMembers: [string, Resource] = [
  ENTRIES,
  {
    GET({ device, member, path }) {
      const entry = device.events.find(({ sequence }) => String(sequence) === member);
      return entry === undefined ? refuse("ResourceMissingAtURI", path) : ok(entryBody(entry));
    },
  },
];

const manager = <D extends ManagedDevice>(call: ResourceCall<D>, options: ManagerOptions<D>) => ({
  "@odata.id": MANAGER,
  "@odata.type": "#Manager.v1_19_0.Manager",
  Id: "bmc",
  Name: options.name,
  ManagerType: "BMC",
  Manufacturer: call.device.spec.vendor,
  FirmwareVersion: call.device.firmware.ofManager,
  PowerState: "On",
  ...(call.device.traits.includes("no_last_reset_time")
    ? {}
    : { LastResetTime: new Date(call.device.managerRestartedAt).toISOString() }),
  Status: { State: "Enabled", Health: "OK" },
  EthernetInterfaces: link(`${MANAGER}/EthernetInterfaces`),
  LogServices: link(`${MANAGER}/LogServices`),
  ...options.more?.(call),
  Links: { ManagerForChassis: [link(options.chassis)], ...options.links },
  Actions: {
    "#Manager.Reset": {
      target: `${MANAGER}/Actions/Manager.Reset`,
      "ResetType@Redfish.AllowableValues": RESET_TYPES,
    },
  },
});

function resetManager({ device, body }: ResourceCall): Answer {
  const parameter = readActionParameter(body, "Manager.Reset", "ResetType", RESET_TYPES);
  if ("refused" in parameter) return parameter.refused;
  device.restartManager();
  return noContent;
}

const ethernetInterface = (path: string, port: Port & { readonly id: string; readonly name: string }) => ({
  "@odata.id": path,
  "@odata.type": "#EthernetInterface.v1_10_0.EthernetInterface",
  Id: port.id,
  Name: port.name,
  InterfaceEnabled: true,
  LinkStatus: "LinkUp",
  SpeedMbps: 1_000,
  MACAddress: port.mac,
  PermanentMACAddress: port.mac,
  IPv4Addresses: [{ Address: port.address, SubnetMask: "255.0.0.0", AddressOrigin: "Static" }],
  Status: { State: "Enabled", Health: "OK" },
});

const eventLog = (path: string) => ({
  "@odata.id": path,
  "@odata.type": "#LogService.v1_4_0.LogService",
  Id: "EventLog",
  Name: "Event log",
  ServiceEnabled: true,
  OverWritePolicy: "WrapsWhenFull",
  LogEntryType: "Event",
  Entries: link(ENTRIES),
});

/** Newest last, as they were written; `$skip` and `$top` cut out a part. */
function listEntries({ device, path, query }: ResourceCall): Answer {
  const bounds = { $skip: 0, $top: Number.POSITIVE_INFINITY };
  for (const parameter of ["$skip", "$top"] as const) {
    const given = query.get(parameter);
    if (given === null) continue;
    if (!/^\d{1,9}$/.test(given)) return refuse("QueryParameterValueTypeError", parameter);
    bounds[parameter] = Number(given);
  }
  const entries = device.events;
  return ok({
    "@odata.id": path,
    "@odata.type": "#LogEntryCollection.LogEntryCollection",
    Name: "Event log entries",
    "Members@odata.count": entries.length,
    Members: entries.slice(bounds.$skip, bounds.$skip + bounds.$top).map(entryBody),
  });
}

const entryBody = ({ sequence, at, severity, messageId, message }: DeviceEvent) => ({
  "@odata.id": `${ENTRIES}/${sequence}`,
  "@odata.type": "#LogEntry.v1_15_0.LogEntry",
  Id: String(sequence),
  Name: `Log entry ${sequence}`,
  EntryType: "Event",
  Created: new Date(at).toISOString(),
  Severity: severity,
  MessageId: messageId,
  Message: message,
});
