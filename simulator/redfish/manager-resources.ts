import { SHELF_LOG_CODES, type ShelfLogCode, type ShelfLogEntry } from "../devices/power-shelf.ts";
import { readActionParameter } from "./action-body.ts";
import { type Answer, noContent, ok, refuse } from "./answer.ts";
import { collection, link, type Resource, type ResourceCall } from "./resources.ts";

const MANAGERS = "/redfish/v1/Managers";
const MANAGER = `${MANAGERS}/bmc`;
const ENTRIES = `${MANAGER}/LogServices/EventLog/Entries`;
const RESET_TYPES = ["GracefulRestart", "ForceRestart"] as const;

/** The management controller: its firmware, its network port, its log, its restart. */
export function managerResources(chassis: string): [string, Resource][] {
  return [
    [MANAGERS, { GET: ({ path }) => ok(collection(path, "ManagerCollection", "Managers", [MANAGER])) }],
    [MANAGER, { GET: (call) => ok(manager(call, chassis)) }],
    [`${MANAGER}/Actions/Manager.Reset`, { POST: resetManager }],
    [
      `${MANAGER}/EthernetInterfaces`,
      {
        GET: ({ path }) => ok(collection(path, "EthernetInterfaceCollection", "Network interfaces", [`${path}/eth0`])),
      },
    ],
    [`${MANAGER}/EthernetInterfaces/eth0`, { GET: (call) => ok(ethernetInterface(call)) }],
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
    GET({ shelf, member, path }) {
      const entry = shelf.log.find(([sequence]) => String(sequence) === member);
      return entry === undefined ? refuse("ResourceMissingAtURI", path) : ok(entryBody(entry));
    },
  },
];

const manager = ({ shelf }: ResourceCall, chassis: string) => ({
  "@odata.id": MANAGER,
  "@odata.type": "#Manager.v1_19_0.Manager",
  Id: "bmc",
  Name: "Power management controller",
  ManagerType: "BMC",
  Manufacturer: shelf.spec.vendor,
  FirmwareVersion: shelf.spec.bmcFirmware,
  PowerState: "On",
  Status: { State: "Enabled", Health: "OK" },
  EthernetInterfaces: link(`${MANAGER}/EthernetInterfaces`),
  LogServices: link(`${MANAGER}/LogServices`),
  Links: { ManagerForChassis: [link(chassis)] },
  Actions: {
    "#Manager.Reset": {
      target: `${MANAGER}/Actions/Manager.Reset`,
      "ResetType@Redfish.AllowableValues": RESET_TYPES,
    },
  },
});

function resetManager({ shelf, accounts, body }: ResourceCall): Answer {
  const parameter = readActionParameter(body, "Manager.Reset", "ResetType", RESET_TYPES);
  if ("refused" in parameter) return parameter.refused;
  shelf.restartManager();
  accounts.forget();
  return noContent;
}

const ethernetInterface = ({ path, shelf }: ResourceCall) => ({
  "@odata.id": path,
  "@odata.type": "#EthernetInterface.v1_10_0.EthernetInterface",
  Id: "eth0",
  Name: "Management port",
  InterfaceEnabled: true,
  LinkStatus: "LinkUp",
  SpeedMbps: 1_000,
  MACAddress: shelf.spec.mac,
  PermanentMACAddress: shelf.spec.mac,
  IPv4Addresses: [{ Address: shelf.spec.address, SubnetMask: "255.0.0.0", AddressOrigin: "Static" }],
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
function listEntries({ shelf, path, query }: ResourceCall): Answer {
  const bounds = { $skip: 0, $top: Number.POSITIVE_INFINITY };
  for (const parameter of ["$skip", "$top"] as const) {
    const given = query.get(parameter);
    if (given === null) continue;
    if (!/^\d{1,9}$/.test(given)) return refuse("QueryParameterValueTypeError", parameter);
    bounds[parameter] = Number(given);
  }
  const entries = shelf.log;
  return ok({
    "@odata.id": path,
    "@odata.type": "#LogEntryCollection.LogEntryCollection",
    Name: "Event log entries",
    "Members@odata.count": entries.length,
    Members: entries.slice(bounds.$skip, bounds.$skip + bounds.$top).map(entryBody),
  });
}

const LOG_TEXTS: Readonly<Record<ShelfLogCode, string>> = {
  power_on_accepted: "Power on was requested.",
  power_off_accepted: "Power off was requested.",
  power_cycle_accepted: "A power cycle was requested.",
  powered_on: "The output was switched on.",
  powered_off: "The output was switched off.",
  manager_restarted: "The management controller was restarted.",
};

const entryBody = ([sequence, at, code]: ShelfLogEntry) => ({
  "@odata.id": `${ENTRIES}/${sequence}`,
  "@odata.type": "#LogEntry.v1_15_0.LogEntry",
  Id: String(sequence),
  Name: `Log entry ${sequence}`,
  EntryType: "Event",
  Created: new Date(at).toISOString(),
  Severity: code === "powered_off" ? "Warning" : "OK",
  MessageId: `PowerShelf.1.0.${SHELF_LOG_CODES.indexOf(code) + 1}`,
  Message: LOG_TEXTS[code],
});
