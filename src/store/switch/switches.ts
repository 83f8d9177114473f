import { z } from "zod";
import { move } from "../../kernel/effects.ts";
import { parseSwitchId } from "../../kernel/ids.ts";
import { expectedSwitchLifecycle } from "../../lifecycles/expected-switch/lifecycle.ts";
import { switchLifecycle } from "../../lifecycles/switch/lifecycle.ts";
import type { Switch, SwitchFacts } from "../../lifecycles/switch/switch.ts";
import { sharesBmcCredentials } from "../device/bmc-credentials.ts";
import { type BmcDeviceFilter, type BmcDeviceRecord, bmcDeviceFacts, defineBmcDevices } from "../device/bmc-devices.ts";
import { deviceTraits } from "../device/device.ts";
import { deviceAttention } from "../device/device-attention.ts";
import { deviceOfRackPlace, partOfRack } from "../device/part-of-rack.ts";
import type { ThingStore } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";

export interface SwitchRecord extends Switch, Omit<BmcDeviceRecord, keyof Switch> {}

const factsSchema = z.object({
  ...bmcDeviceFacts,
  firmware: z.record(z.string(), z.string()).default({}),
  reportedNvosAddress: z.string().nullable().default(null),
  nvosCertificateFingerprint: z.string().nullable().default(null),
  slotNumber: z.number().nullable().default(null),
  trayIndex: z.number().nullable().default(null),
  isPrimary: z.boolean().default(false),
  fabric: z
    .object({
      state: z.enum(["ok", "not_ok", "unknown"]),
      additionInfo: z.string().nullable().default(null),
      reason: z.string().nullable().default(null),
      error: z.string().nullable().default(null),
      at: z.string(),
    })
    .nullable()
    .default(null),
});

const rowSchema = z.object({
  nvos_macs: z.array(z.string()),
  nvos_address: z.string().nullable(),
  nvos_mac_taken_by: z.string().nullable(),
  enable_nmxc: z.boolean(),
});

export interface SwitchFilter extends BmcDeviceFilter {
  readonly nvosMac?: string;
  /** The id of an open alert. */
  readonly alert?: string;
}

export const switches = defineBmcDevices<Switch, SwitchRecord, SwitchFilter>({
  kind: switchLifecycle.kind,
  table: "switches",
  expected: { table: "expected_switches", link: "switchId" },
  columns: [
    "t.nvos_macs",
    "t.nvos_address",
    "t.enable_nmxc",
    "(select (array_agg(o.id order by o.id))[1] from switches o where o.nvos_macs && t.nvos_macs and o.id <> t.id) as nvos_mac_taken_by",
  ],
  parse: (row, shared) => {
    const own = rowSchema.parse(row);
    return {
      ...shared,
      id: parseSwitchId(row.id, "id"),
      facts: factsSchema.parse(row.facts) satisfies SwitchFacts,
      labels: row.labels,
      nvosMacs: own.nvos_macs,
      givenNvosAddress: own.nvos_address,
      nvosMacTakenBy: own.nvos_mac_taken_by,
      enableNmxc: own.enable_nmxc,
    };
  },
  parseRecord: (_, shared) => shared,
  conditions({ nvosMac, alert }, add) {
    add((at) => `t.nvos_macs @> array[${at}]`, nvosMac);
    add(
      (at) => `exists (select from health_reports h cross join lateral jsonb_array_elements(h.report -> 'alerts') a
                        where h.kind = 'switch' and h.id = t.id and (h.expires_at is null or h.expires_at > now()) and a ->> 'id' = ${at})`,
      alert,
    );
  },
});
export const { list: listSwitches, findOfBmcs: findSwitchesOfBmcs } = switches;

/** One query for many; undefined for one that does not exist. */
export async function findSwitches(db: Queryable, ids: readonly string[]): Promise<(Switch | undefined)[]> {
  const found = new Map((await listSwitches(db, { ids })).map((each) => [each.id as string, each]));
  return ids.map((id) => found.get(id));
}

export const switchTraits = deviceTraits<SwitchRecord>({
  noun: "switch",
  command: "switch",
  parseId: parseSwitchId,
  list: (db, ids) => listSwitches(db, { ids }),
  metadataOf: (device) => device,
  deletion: {
    moves: ({ expectedId }) =>
      expectedId === null ? [] : [move(expectedSwitchLifecycle, expectedId, "switch_deleted")],
  },
});

export const switchStore: ThingStore<Switch> = {
  lifecycle: switchLifecycle,
  table: "switches",
  rackSql: "t.rack_id",
  place: deviceOfRackPlace("switches"),
  requests: {},
  replacedFacts: {
    certificateFingerprint: "certificate_replaced",
    nvosCertificateFingerprint: "certificate_replaced",
  },
  ...sharesBmcCredentials,
  device: switchTraits,
  attention: deviceAttention,
  ...partOfRack,
  load: switches.load,
};
