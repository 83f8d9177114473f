import type {
  HostReprovision,
  HostReprovisionFacts,
  ReprovisionRequest,
} from "../../lifecycles/host-reprovision/host-reprovision.ts";
import { hostReprovisionLifecycle } from "../../lifecycles/host-reprovision/lifecycle.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import type { Assigned } from "../../lifecycles/rack/rack.ts";
import { FIRMWARE_CLASSES, type FirmwareClass } from "../../lifecycles/rack-firmware/rack-firmware.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import { placeOfItsMachine } from "../machine/machine-place.ts";
import { machineStore } from "../machine/machines.ts";
import { isFlag, isNumber, isText, oneOf, orNull, readerOf } from "../postgres/stored-json.ts";
import { assignedSql } from "../rack/assigned.ts";
import { defaultFirmwareSql, parseRackFirmware, rackFirmwareJson } from "../rack-firmware/rack-firmware.ts";

interface Row extends StateColumns {
  facts: unknown;
  reprovision_requested: ReprovisionRequest | null;
  assigned: Assigned | null;
  class: FirmwareClass | null;
  firmware: Parameters<typeof parseRackFirmware>[0] | null;
}

const readFacts = readerOf<HostReprovisionFacts>({
  retryCount: [isNumber, 0],
  reportedAt: [orNull(isText), null],
  exhausted: [isFlag, false],
});
const isClass = oneOf(FIRMWARE_CLASSES);

const SELECT = `select ${STATE_COLUMNS}, t.reprovision_requested, case when m.id is not null then ${assignedSql("m")} end as assigned, p.class,
    case when f.id is not null then ${rackFirmwareJson("f")} end as firmware
  from host_reprovisions t
    left join machines m on m.id = t.id
    left join racks r on r.id = m.rack
    left join rack_profiles p on p.name = r.rack_profile_id
    left join rack_firmware f on f.id = ${defaultFirmwareSql("p.hardware_type")}`;

export const hostReprovisionStore: ThingStore<HostReprovision> = {
  lifecycle: hostReprovisionLifecycle,
  table: "host_reprovisions",
  rackSql: "(select m.rack from machines m where m.id = t.id)",
  place: placeOfItsMachine("host_reprovisions"),
  requests: {
    reprovisionRequest: { column: "reprovision_requested", lastColumn: "last_reprovision_request" },
  },
  related: {
    run: {
      of: ({ state: { run } }) => (run === undefined ? null : { kind: "run", id: run }),
      loadsState: true,
    },
    rack: {
      of: ({ machine }) => (machine?.spec.rack ? { kind: rackLifecycle.kind, id: machine.spec.rack } : null),
      wakes: { butFor: [] },
    },
  },
  // It works on the machine, and nobody else may meanwhile.
  claims: ({ id }) => ({
    targets: [{ kind: machineLifecycle.kind, id }],
    unused: [{ kind: machineLifecycle.kind, id }],
    holder: { kind: hostReprovisionLifecycle.kind, id },
  }),
  restsIdle: ({ state, reprovisionRequest }) => state.name === "ready" && reprovisionRequest === null,
  async load(db, ids) {
    const rows = await db.query<Row>({
      name: "host_reprovisions.load",
      text: `${SELECT} where t.id = any($1)`,
      values: [ids],
    });
    const { things } = await machineStore.load(
      db,
      rows.map(({ id }) => id),
    );
    const machines = new Map(things.map((machine) => [machine.id as string, machine]));
    return parseRows(rows, (row) => ({
      ...parseStateColumns(row),
      id: row.id,
      machine: machines.get(row.id) ?? null,
      assigned: row.assigned ?? "unknown",
      firmware: row.firmware && parseRackFirmware(row.firmware),
      firmwareClass: isClass(row.class) ? row.class : "prod",
      reprovisionRequest: row.reprovision_requested,
      facts: readFacts(row.facts),
    }));
  },
};
