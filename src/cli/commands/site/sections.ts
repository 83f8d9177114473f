import { type DescMessage, fromJson, type MessageShape, toJson } from "@bufbuild/protobuf";
import { MachineSchema, MachineService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { ExpectedRackSchema, ExpectedSwitchSchema } from "../../../../contract/forge/expected_pb.js";
import { ExpectedPowerShelfSchema, Forge } from "../../../../contract/forge/forge_pb.js";
import {
  MachineLifecycleService,
  SetMachineCredentialsRequestSchema,
} from "../../../../contract/millwright/v1/machine_pb.js";
import { RackProfileSchema, RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import {
  type ListExpectedSwitchOsAddressesResponse,
  SwitchService,
} from "../../../../contract/millwright/v1/switch_pb.js";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { decode, type Entry, normalise, requireTexts, type SectionName, type Spelling } from "./site-file.ts";

/** An entry of the file or of the server: what tells it apart, and what it says, without what cannot be compared. */
export interface Row {
  readonly key: string;
  readonly says: Entry;
  /** Writes it. */
  readonly put: (isNew: boolean) => Promise<unknown>;
  /** Absent: entries of this kind are never removed. */
  readonly remove?: () => Promise<unknown>;
}

/** One list of the file, and its counterpart on the server. */
export interface Section {
  readonly name: SectionName;
  /** What people call one entry. */
  readonly noun: string;
  /** How many of its entries are put at the same time. */
  readonly atOnce: number;
  wanted(entry: Entry, where: string): Row;
  /** @param wanted What is not mentioned there is not asked for where that takes a call of its own. */
  known(wanted: readonly Row[]): Promise<readonly Row[]>;
}

const NOTHING: Spelling = { renamed: {}, reported: [], wrapped: {} };
const bareMac = (mac: string): string => mac.replace(/[:.-]/g, "").toLowerCase();

/** Each is a transaction; a server with a usual number of connections to its database bears so many beside its own work. */
const AT_ONCE = 8;
/** The server writes rows that come together in one transaction. */
const TOGETHER = 64;

/** Passwords are never told, and ids are the server's. */
const UNTOLD = /password|^expected_.*_id$/;

/** In the order in which they are put: what others name comes first. */
export async function openSections(session: Session): Promise<readonly Section[]> {
  const { signal } = session;
  const [forge, racks, machines, lifecycles, switches] = [
    await session.client(Forge),
    await session.client(RackService),
    await session.client(MachineService),
    await session.client(MachineLifecycleService),
    await session.client(SwitchService),
  ];
  return [
    section({
      name: "rack_profiles",
      noun: "rack profile",
      schema: RackProfileSchema,
      spelling: NOTHING,
      flat: true,
      keyOf: ({ name }) => name,
      list: async () => (await racks.listRackProfiles({}, { signal })).profiles,
      put: (profile) => racks.putRackProfile({ profile }, { signal }),
      remove: ({ name }) => racks.deleteRackProfile({ name }, { signal }),
    }),
    section({
      name: "expected_racks",
      noun: "expected rack",
      schema: ExpectedRackSchema,
      spelling: {
        renamed: { id: "rack_id", profile: "rack_profile_id" },
        reported: [],
        wrapped: { rack_id: "id", rack_profile_id: "id" },
      },
      keyOf: ({ rackId }) => rackId?.id ?? "",
      list: async () => (await forge.getAllExpectedRacks({}, { signal })).expectedRacks,
      put: (rack, isNew) =>
        isNew ? forge.addExpectedRack(rack, { signal }) : forge.updateExpectedRack(rack, { signal }),
      remove: ({ rackId }) => forge.deleteExpectedRack({ rackId: rackId?.id ?? "" }, { signal }),
    }),
    section({
      name: "expected_power_shelves",
      noun: "expected power shelf",
      atOnce: TOGETHER,
      schema: ExpectedPowerShelfSchema,
      spelling: deviceSpelling("shelf_serial_number", "expected_power_shelf_id"),
      keyOf: ({ bmcMacAddress }) => bareMac(bmcMacAddress),
      list: async () => (await forge.getAllExpectedPowerShelves({}, { signal })).expectedPowerShelves,
      put: (shelf, isNew) =>
        isNew ? forge.addExpectedPowerShelf(shelf, { signal }) : forge.updateExpectedPowerShelf(shelf, { signal }),
      remove: ({ bmcMacAddress }) => forge.deleteExpectedPowerShelf({ bmcMacAddress }, { signal }),
    }),
    section({
      name: "expected_switches",
      noun: "expected switch",
      atOnce: TOGETHER,
      schema: ExpectedSwitchSchema,
      spelling: deviceSpelling("switch_serial_number", "expected_switch_id"),
      keyOf: ({ bmcMacAddress }) => bareMac(bmcMacAddress),
      list: async () => (await forge.getAllExpectedSwitches({}, { signal })).expectedSwitches,
      besides: {
        field: "nvos_address",
        list: async () => osAddresses(await switches.listExpectedSwitchOsAddresses({}, { signal })),
      },
      async put(one, isNew, { nvos_address: osAddress }) {
        if (isNew) await forge.addExpectedSwitch(one, { signal });
        if (typeof osAddress === "string")
          await switches.setExpectedSwitchOsAddress({ bmcMacAddress: one.bmcMacAddress, osAddress }, { signal });
        // The password of NVOS is for the address that is on record when it is given.
        if (!isNew || (osAddress && one.nvosPassword)) await forge.updateExpectedSwitch(one, { signal });
      },
      remove: ({ bmcMacAddress }) => forge.deleteExpectedSwitch({ bmcMacAddress }, { signal }),
    }),
    section({
      name: "machines",
      noun: "machine",
      schema: MachineSchema,
      spelling: { renamed: { id: "machine_id" }, reported: ["status"], wrapped: {} },
      flat: true,
      keyOf: ({ machineId }) => machineId,
      list: () =>
        readPages(
          (pageToken) => machines.listMachines({ pageSize: 500, pageToken }, { signal }),
          (page) => page.machines,
        ),
      credentials: MACHINE_CREDENTIALS,
      async put({ machineId, labels, spec }, _isNew, credentials) {
        await machines.registerMachine({ machine: { machineId, labels, ...(spec && { spec }) } }, { signal });
        if (Object.keys(credentials).length === 0) return;
        await lifecycles.setMachineCredentials(
          fromJson(SetMachineCredentialsRequestSchema, { machine_id: machineId, ...credentials }),
          { signal },
        );
      },
    }),
  ];
}

const osAddresses = ({ addresses }: ListExpectedSwitchOsAddressesResponse): ReadonlyMap<string, string> =>
  new Map(addresses.map(({ bmcMacAddress, osAddress }) => [bareMac(bmcMacAddress), osAddress]));

/** The server tells of no account; that it has none for the BMC shows once it wanted to sign in. */
const MACHINE_CREDENTIALS: NonNullable<SectionOptions<typeof MachineSchema>["credentials"]> = {
  fields: ["bmc_username", "bmc_password", "ssh_username", "ssh_private_key"],
  isMissing: ({ status }) =>
    (status?.conditions ?? []).some(({ type, reason }) => type === "BMCReachable" && reason === "NoCredentials"),
};

const deviceSpelling = (serial: string, id: string): Spelling => ({
  renamed: {
    bmc_mac: "bmc_mac_address",
    bmc_endpoint: "bmc_ip_address",
    serial,
    retain_credentials: "bmc_retain_credentials",
    id,
  },
  reported: ["power_shelf_id", "switch_id", "explore_state", "explore_message", "explored_at", "next_explore_at"],
  wrapped: { rack_id: "id", [id]: "value" },
});

interface SectionOptions<D extends DescMessage> {
  readonly name: SectionName;
  readonly noun: string;
  readonly atOnce?: number;
  readonly schema: D;
  readonly spelling: Spelling;
  /** Names and labels stand at the top in the contract, too. */
  readonly flat?: true;
  readonly keyOf: (message: MessageShape<D>) => string;
  readonly list: () => Promise<readonly MessageShape<D>[]>;
  /** How to sign in, where an entry may say that besides what the message has: its fields, and what shows that the server lacks it. */
  readonly credentials?: {
    readonly fields: readonly string[];
    readonly isMissing: (known: MessageShape<D>) => boolean;
  };
  /** A field that the message lacks: the server tells it apart, by the keys of the entries that have it. */
  readonly besides?: {
    readonly field: string;
    readonly list: () => Promise<ReadonlyMap<string, string>>;
  };
  /** @param more What the entry says besides the message. */
  readonly put: (message: MessageShape<D>, isNew: boolean, more: Entry) => Promise<unknown>;
  readonly remove?: (message: MessageShape<D>) => Promise<unknown>;
}

function section<D extends DescMessage>(options: SectionOptions<D>): Section {
  const {
    name,
    noun,
    atOnce = AT_ONCE,
    schema,
    spelling,
    flat,
    credentials,
    besides,
    keyOf,
    list,
    put,
    remove,
  } = options;
  const rowOf = (message: MessageShape<D>, more: Entry, signIn: string | undefined): Row => ({
    key: keyOf(message),
    says: {
      ...told(toJson(schema, message, { useProtoFieldName: true }) as Entry),
      ...(signIn !== undefined && { credentials: signIn }),
      ...(besides !== undefined && partition(more, [besides.field])[1]),
    },
    put: (isNew) => put(message, isNew, more),
    ...(remove && { remove: () => remove(message) }),
  });
  return {
    name,
    noun,
    atOnce,
    wanted(entry, where) {
      const [own, more] = partition(entry, [...(credentials?.fields ?? []), ...(besides ? [besides.field] : [])]);
      requireTexts(more, where);
      const whole = flat ? renamedOnly(own, spelling) : normalise(own, spelling);
      return rowOf(decode(schema, whole, where), more, more.bmc_password === undefined ? undefined : "given");
    },
    async known(wanted) {
      const isMentioned = besides !== undefined && wanted.some(({ says }) => besides.field in says);
      const told = isMentioned ? await besides.list() : undefined;
      return (await list()).map((message) => {
        const more: Entry = told && besides ? { [besides.field]: told.get(keyOf(message)) ?? "" } : {};
        return rowOf(message, more, credentials?.isMissing(message) ? "missing" : "given");
      });
    },
  };
}

const partition = (entry: Entry, fields: readonly string[]): readonly [Entry, Entry] => {
  const part = (isWanted: (field: string) => boolean) =>
    Object.fromEntries(Object.entries(entry).filter(([field]) => isWanted(field)));
  return [part((field) => !fields.includes(field)), part((field) => fields.includes(field))];
};

const renamedOnly = (entry: Entry, { renamed, reported }: Spelling): Entry =>
  Object.fromEntries(
    Object.entries(entry)
      .filter(([word]) => !reported.includes(word))
      .map(([word, value]) => [renamed[word] ?? word, value]),
  );

const told = (entry: Entry): Entry =>
  Object.fromEntries(
    Object.entries(entry)
      .filter(([field]) => !UNTOLD.test(field))
      .map(([field, value]) => [field, field.endsWith("mac_address") ? bareMac(String(value)) : value]),
  );
