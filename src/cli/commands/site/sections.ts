import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { MachineSchema, MachineService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { ExpectedRackSchema, ExpectedSwitchSchema } from "../../../../contract/forge/expected_pb.js";
import { ExpectedPowerShelfSchema, Forge } from "../../../../contract/forge/forge_pb.js";
import { RackProfileSchema, RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { decode, type Entry, normalise, type SectionName, type Spelling } from "./site-file.ts";

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
  wanted(entry: Entry, where: string): Row;
  known(): Promise<readonly Row[]>;
}

const NOTHING: Spelling = { renamed: {}, reported: [], wrapped: {} };
const bareMac = (mac: string): string => mac.replace(/[:.-]/g, "").toLowerCase();

/** Passwords are never told, and ids are the server's. */
const UNTOLD = /password|^expected_.*_id$/;

/** In the order in which they are put: what others name comes first. */
export async function openSections(session: Session): Promise<readonly Section[]> {
  const { signal } = session;
  const [forge, racks, machines] = [
    await session.client(Forge),
    await session.client(RackService),
    await session.client(MachineService),
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
      schema: ExpectedSwitchSchema,
      spelling: deviceSpelling("switch_serial_number", "expected_switch_id"),
      keyOf: ({ bmcMacAddress }) => bareMac(bmcMacAddress),
      list: async () => (await forge.getAllExpectedSwitches({}, { signal })).expectedSwitches,
      put: (one, isNew) =>
        isNew ? forge.addExpectedSwitch(one, { signal }) : forge.updateExpectedSwitch(one, { signal }),
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
      put: ({ machineId, labels, ...rest }) =>
        machines.registerMachine({ machine: { machineId, labels, ...(rest.spec && { spec: rest.spec }) } }, { signal }),
    }),
  ];
}

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
  readonly schema: D;
  readonly spelling: Spelling;
  /** Names and labels stand at the top in the contract, too. */
  readonly flat?: true;
  readonly keyOf: (message: MessageShape<D>) => string;
  readonly list: () => Promise<readonly MessageShape<D>[]>;
  readonly put: (message: MessageShape<D>, isNew: boolean) => Promise<unknown>;
  readonly remove?: (message: MessageShape<D>) => Promise<unknown>;
}

function section<D extends DescMessage>(options: SectionOptions<D>): Section {
  const { name, noun, schema, spelling, flat, keyOf, list, put, remove } = options;
  const rowOf = (message: MessageShape<D>): Row => ({
    key: keyOf(message),
    says: told(toJson(schema, message, { useProtoFieldName: true }) as Entry),
    put: (isNew) => put(message, isNew),
    ...(remove && { remove: () => remove(message) }),
  });
  return {
    name,
    noun,
    wanted(entry, where) {
      const whole = flat ? renamedOnly(entry, spelling) : normalise(entry, spelling);
      return rowOf(decode(schema, whole, where));
    },
    known: async () => (await list()).map(rowOf),
  };
}

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
