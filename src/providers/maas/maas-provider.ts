import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { IpmiPower, Maas, MaasNeighbour, MaasTarget } from "../../capabilities/fleet/maas.ts";
import type { MaasMachine } from "../../capabilities/fleet/maas-machine.ts";
import { listAt, numberAt, textAt, valueAt } from "../transport/device-json.ts";
import { createMaasClient, type Fields, type MaasClient, type MaasClientOptions } from "./client.ts";
import { machineOf, timeOf, wordAt } from "./machine.ts";

const EVENTS_READ = 100;
/** What the installer writes at its end is what tells why it failed. */
const LOG_KEPT = 64 * 1_024;

const powerFields = ({ address, username, password }: IpmiPower): [string, string][] => [
  ["power_type", "ipmi"],
  ["power_parameters_power_address", address],
  ["power_parameters_power_user", username],
  ["power_parameters_power_pass", password],
  ["power_parameters_power_driver", "LAN_2_0"],
];

export function createMaas(options: MaasClientOptions): Maas & { close(): void } {
  const client = createMaasClient(options);
  const command = commandsOf(client);
  const list = async (target: MaasTarget, path: string, call: CallContext, query: Fields = []) => {
    const value = await client.ask(target, { method: "GET", path, query }, call);
    if (!Array.isArray(value)) throw strange(`GET ${path}`, "a list");
    return value as readonly unknown[];
  };
  return {
    close: () => client.close(),
    ...sitePart(client, list),
    listNeighbours: (target, call) => listNeighbours(client, target, call),

    async listMachines(target, { hostname, mac }, call) {
      const query = [
        ...(hostname === undefined ? [] : [["hostname", hostname] as const]),
        ...(mac === undefined ? [] : [["mac_address", mac] as const]),
      ];
      const asked = { method: "GET", path: "machines/", query, keep: machineOf } as const;
      return (await client.ask(target, asked, call)) as readonly MaasMachine[];
    },
    async findMachine(target, systemId, call) {
      try {
        return readable(await client.ask(target, { method: "GET", path: placeOf(systemId) }, call), systemId);
      } catch (error) {
        if (error instanceof DeviceFailure && error.status === 404) return undefined;
        throw error;
      }
    },
    async createMachine(target, { hostname, power }, call) {
      const form = [
        ["hostname", hostname],
        ["architecture", "amd64/generic"],
        ["commission", "false"],
        ...powerFields(power),
      ] as const;
      return readable(
        await client.ask(target, { method: "POST", path: "machines/", form: form as Fields }, call),
        hostname,
      );
    },
    async takeOver(target, systemId, { hostname, power }, call) {
      const form = [["hostname", hostname] as const, ...powerFields(power)];
      return readable(await client.ask(target, { method: "PUT", path: placeOf(systemId), form }, call), systemId);
    },
    async deleteMachine(target, systemId, call) {
      await client.ask(target, { method: "DELETE", path: placeOf(systemId) }, call);
    },

    commission: (target, systemId, call) => command(target, systemId, "commission", call),
    abort: (target, systemId, comment, call) => command(target, systemId, "abort", call, [["comment", comment]]),
    deploy: (target, systemId, { userData, distroSeries, hardwareSync, comment }, call) =>
      command(target, systemId, "deploy", call, [
        ["user_data", Buffer.from(userData, "utf8").toString("base64")],
        ...(distroSeries === null ? [] : [["distro_series", distroSeries] as const]),
        ["enable_hw_sync", String(hardwareSync)],
        ["comment", comment],
      ]),
    release: (target, systemId, { erase, comment }, call) =>
      command(target, systemId, "release", call, [
        ["erase", String(erase)],
        ["comment", comment],
      ]),
    async powerOn(target, systemId, call) {
      await client.ask(target, { method: "POST", path: placeOf(systemId), op: "power_on" }, call);
    },
    async powerOff(target, systemId, call) {
      // The release has ended the system: nothing is left that would obey a soft one.
      const form = [["stop_mode", "hard"]] as const;
      await client.ask(target, { method: "POST", path: placeOf(systemId), op: "power_off", form }, call);
    },
    ...partsPart(client, command),
  };
}

/** What belongs to the region itself. */
function sitePart(
  client: MaasClient,
  list: (target: MaasTarget, path: string, call: CallContext) => Promise<readonly unknown[]>,
): Pick<Maas, "readVersion" | "readUser" | "readSetting" | "listImages" | "listRackControllers" | "listSubnets"> {
  return {
    async readVersion(target, call) {
      const value = await client.ask(target, { method: "GET", path: "version/", isAnonymous: true }, call);
      const version = textAt(value, "version");
      if (version === undefined) throw strange("GET version/", "the version of a MAAS");
      return version;
    },
    async readUser(target, call) {
      const value = await client.ask(target, { method: "GET", path: "users/", op: "whoami" }, call);
      return { name: textAt(value, "username") ?? "unknown", isAdmin: valueAt(value, "is_superuser") === true };
    },
    readSetting: (target, name, call) =>
      client.ask(target, { method: "GET", path: "maas/", op: "get_config", query: [["name", name]] }, call),
    async listImages(target, call) {
      return (await list(target, "boot-resources/", call)).flatMap((each) => textAt(each, "name") ?? []);
    },
    async listRackControllers(target, call) {
      return (await list(target, "rackcontrollers/", call)).flatMap((each) => textAt(each, "hostname") ?? []);
    },
    async listSubnets(target, call) {
      return (await list(target, "subnets/", call)).flatMap((each) => {
        const [id, cidr] = [numberAt(each, "id"), textAt(each, "cidr")];
        return id === undefined || cidr === undefined
          ? []
          : [{ id, cidr, hasDhcp: valueAt(each, "vlan", "dhcp_on") === true }];
      });
    },
  };
}

/** Versions before 2.1 have no such list. */
const isNotThere = (error: unknown): boolean =>
  error instanceof DeviceFailure && (error.status === 404 || error.status === 400 || error.status === 410);

async function listNeighbours(client: MaasClient, target: MaasTarget, call: CallContext) {
  const asked = { method: "GET", path: "discovery/", op: "by_unknown_mac" } as const;
  const value = await client.ask(target, asked, call).catch((error: unknown) => {
    if (isNotThere(error)) return [];
    throw error;
  });
  if (!Array.isArray(value)) throw strange("GET discovery/?op=by_unknown_mac", "a list");
  return value.flatMap((each): MaasNeighbour[] => {
    const mac = wordAt(each, "mac_address")?.toLowerCase();
    if (mac === undefined) return [];
    return [
      {
        mac,
        ip: wordAt(each, "ip") ?? null,
        hostname: wordAt(each, "hostname") ?? null,
        vendor: wordAt(each, "mac_organization") ?? null,
        lastSeenAt: timeOf(wordAt(each, "last_seen")),
      },
    ];
  });
}

/** Disks and ports of a machine, and what its installation wrote. */
function partsPart(
  client: MaasClient,
  command: ReturnType<typeof commandsOf>,
): Pick<Maas, "setBootDisk" | "setFlatLayout" | "linkSubnet" | "unlinkSubnet" | "listEvents" | "readInstallLog"> {
  const port = (systemId: string, id: number) => `nodes/${encodeURIComponent(systemId)}/interfaces/${id}/`;
  return {
    async setBootDisk(target, systemId, diskId, call) {
      const path = `nodes/${encodeURIComponent(systemId)}/blockdevices/${diskId}/`;
      await client.ask(target, { method: "POST", path, op: "set_boot_disk" }, call);
    },
    setFlatLayout: (target, systemId, diskId, call) =>
      command(target, systemId, "set_storage_layout", call, [
        ["storage_layout", "flat"],
        ["root_device", String(diskId)],
      ]),
    async linkSubnet(target, { systemId, interfaceId, subnetId, ipAddress }, call) {
      const form = [
        ["mode", ipAddress === null ? "AUTO" : "STATIC"],
        ["subnet", String(subnetId)],
        ...(ipAddress === null ? [] : [["ip_address", ipAddress]]),
      ] as [string, string][];
      await client.ask(target, { method: "POST", path: port(systemId, interfaceId), op: "link_subnet", form }, call);
    },
    async unlinkSubnet(target, { systemId, interfaceId, linkId }, call) {
      const form = [["id", String(linkId)]] as const;
      await client.ask(target, { method: "POST", path: port(systemId, interfaceId), op: "unlink_subnet", form }, call);
    },
    async listEvents(target, systemId, call) {
      const query = [
        ["id", systemId],
        ["limit", String(EVENTS_READ)],
        ["level", "INFO"],
      ] as const;
      const value = await client.ask(target, { method: "GET", path: "events/", op: "query", query }, call);
      return listAt(value, "events").map((each) => ({
        level: textAt(each, "level") ?? "",
        type: textAt(each, "type") ?? "",
        description: textAt(each, "description") ?? "",
      }));
    },
    async readInstallLog(target, systemId, call) {
      const path = `nodes/${encodeURIComponent(systemId)}/results/`;
      const query = [
        ["type", "installation"],
        ["include_output", "true"],
      ] as const;
      const value = await client.ask(target, { method: "GET", path, query }, call);
      const outputs = (Array.isArray(value) ? value : []).flatMap((set) =>
        listAt(set, "results").flatMap((result) => {
          const output = valueAt(result, "output");
          return typeof output === "string" ? [Buffer.from(output, "base64").toString("utf8")] : [];
        }),
      );
      return outputs.join("\n").slice(-LOG_KEPT);
    },
  };
}

const placeOf = (systemId: string): string => `machines/${encodeURIComponent(systemId)}/`;

const commandsOf =
  (client: MaasClient) =>
  async (
    target: MaasTarget,
    systemId: string,
    op: string,
    call: CallContext,
    form: Fields = [],
  ): Promise<MaasMachine> => {
    const path = placeOf(systemId);
    const answer = machineOf(await client.ask(target, { method: "POST", path, op, form }, call));
    // Some versions answer some commands with nothing, or with "OK".
    return answer ?? readable(await client.ask(target, { method: "GET", path }, call), systemId);
  };

function readable(value: unknown, name: string): MaasMachine {
  const machine = machineOf(value);
  if (machine === undefined) throw strange(`what was asked of ${name}`, "a machine");
  return machine;
}

const strange = (asked: string, expected: string): DeviceFailure =>
  new DeviceFailure("protocol", "bmc", `MAAS answered ${asked} with something that is not ${expected}`);
