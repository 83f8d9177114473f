import { placeOfBmc } from "../../../src/capabilities/credential-place.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { registerMachine } from "../../../src/services/machine/machines.ts";
import { startRackMaintenance } from "../../../src/services/rack/maintenance.ts";
import { bmcKey, putBmcCredentials } from "../../../src/store/device/bmc-credentials.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { PASSWORD, UpdateFront, USER } from "../firmware/update-front.ts";
import { NOTHING_ELSE, tester } from "../run-bench.ts";
import { type ChildRow, listChildren } from "./children.ts";
import { CHECKED, rackBench } from "./rack-bench.ts";
import type { StandInRackManager } from "./stand-in-rack-manager.ts";

export type DeviceKind = "compute" | "switch" | "power_shelf";

/** The firmware that a rack is to get, and the version of its BMCs that it brings. */
export const FIRMWARE = "fw-2";
export const WANTED = "2.0";
/** What each kind of device calls the part that is written. */
const PARTS = { compute: "BMC_0", switch: "BMC_0", power_shelf: "PMC_0" } as const;
const COMPONENTS = { compute: "bmc", switch: "bmc", power_shelf: "pmc" } as const;
const FILES = { compute: "tray-2.0.fwpkg", switch: "switch-2.0.fwpkg", power_shelf: "shelf-2.0.fwpkg" } as const;

const componentOf = (device: DeviceKind, order: number) => ({
  ...{ device, component: COMPONENTS[device], class: "prod", version: WANTED, targets: [], activation: "none", order },
  digest: `sha256:${String(order).repeat(64)}`,
  file: { name: FILES[device], url: `http://files.example/${FILES[device]}`, bytes: 1, sign: "bearer" },
});

const putFirmwareOnRecord = (db: Database) =>
  db.query(
    `insert into rack_firmware (id, config, components, hardware_type, is_default, state)
     values ($1, '{}', $2::jsonb, 'any', false, 'available')`,
    [FIRMWARE, JSON.stringify([componentOf("compute", 1), componentOf("switch", 2), componentOf("power_shelf", 3)])],
  );

/** The chassis of a switch or a shelf, which have no computer system of their own. */
function addChassis(front: UpdateFront, id: string, serial: string): void {
  front.more.set("/Chassis", { Members: [{ "@odata.id": `/redfish/v1/Chassis/${id}` }] });
  front.more.set(`/Chassis/${id}`, { Id: id, SerialNumber: serial, PowerState: "On", Status: { Health: "OK" } });
}

/** Nobody signs in with it. */
const NO_SSH = {
  sshUsername: "root",
  sshPrivateKey: "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
} as const;

/** What a request asks for beside the firmware. */
type Activities = Parameters<typeof startRackMaintenance>[2]["activities"];
export const UPGRADE: Activities = [{ kind: "firmware_upgrade", firmware_version: FIRMWARE }];
export const CONFIGURE: Activities = [{ kind: "configure_nmx_cluster" }];

export interface ManagedRacks {
  readonly racks: ReturnType<typeof rackBench>;
  front(id: string): UpdateFront;
  /** What the firmware of the device says it is. */
  shows(id: string): string | undefined;
  /** A rack `<id>` with trays `<id>-m1`…, switches `<id>-s1`… and shelves `<id>-p1`…, ready. */
  addRack(id: string, counts: { readonly [kind in DeviceKind]?: number }, topology?: string): Promise<void>;
  /** Absent: the firmware, and nothing else. */
  request(rackId: string, activities?: Activities): Promise<void>;
  /** As a device does that has written the file, and as its rack manager sees it. */
  finish(id: string): void;
  children(rackId: string): Promise<readonly ChildRow[]>;
  close(): Promise<void>;
}

/** Racks whose devices are BMCs of the test's own, with one record of firmware that none of them has yet. */
export async function managedRacks(deps: ServiceDeps, standIn: StandInRackManager): Promise<ManagedRacks> {
  const { db } = deps;
  const fronts = new Map<string, { readonly front: UpdateFront; readonly kind: DeviceKind }>();
  await putFirmwareOnRecord(db);
  const racks = rackBench({ db, deps });

  const addTray = async (rack: string, id: string, { target }: UpdateFront) => {
    const given = { serial: "", macAddresses: [], sshHostKey: "", jumpHosts: [], sshEndpoint: `${id}.example` };
    const spec = { ...NOTHING_ELSE, ...given, bmcEndpoint: `${target.address}:${target.port}` };
    await registerMachine(deps, tester, { id, labels: {}, spec });
    await setMachineCredentials(deps, tester, { ...NO_SSH, machineId: id, bmcUsername: USER, bmcPassword: PASSWORD });
    await db.query("update machines set rack = $2, conditions = $3::jsonb, basis = basis + 1 where id = $1", [
      ...[id, rack, JSON.stringify(CHECKED)],
    ]);
  };
  const addOther = async (table: string, rack: string, id: string, { target }: UpdateFront) => {
    const mac = `02:00:00:00:${String(fronts.size)
      .padStart(4, "0")
      .replace(/(..)(..)/, "$1:$2")}`;
    await db.transaction(async (tx) => {
      await lockThings(tx, [bmcKey(mac)]);
      await putBmcCredentials(tx, deps.secrets, {
        ...{ mac, place: placeOfBmc({ ...target, trust: "pin" }) },
        ...{ username: USER, password: PASSWORD },
      });
    });
    const facts = { serial: id, powerState: "on", trayIndex: fronts.size };
    await db.query(
      `insert into ${table} (id, name, rack_id, bmc_mac, bmc_address, bmc_port, state, facts)
       values ($1, $1, $2, $3, $4, $5, 'ready', $6::jsonb)`,
      [id, rack, mac, target.address, target.port, JSON.stringify(facts)],
    );
  };

  const frontOf = (id: string) => {
    const found = fronts.get(id);
    if (!found) throw new Error(`there is no device ${id}`);
    return found;
  };

  return {
    racks,
    front: (id) => frontOf(id).front,
    shows(id) {
      const { front, kind } = frontOf(id);
      return front.versions.get(PARTS[kind]);
    },
    async addRack(id, counts, topology) {
      const part = (kind: DeviceKind) => JSON.stringify({ count: counts[kind] ?? 0, slot_ids: [] });
      await db.query(
        `insert into rack_profiles (name, hardware_type, topology, class, compute, switches, power_shelves, created_by)
         values ($1, 'gb200', $2, 'prod', $3::jsonb, $4::jsonb, $5::jsonb, 'test')`,
        [id, topology ?? null, part("compute"), part("switch"), part("power_shelf")],
      );
      const letters = { compute: "m", switch: "s", power_shelf: "p" } as const;
      for (const kind of ["compute", "switch", "power_shelf"] as const)
        for (let at = 1; at <= (counts[kind] ?? 0); at += 1) {
          const device = `${id}-${letters[kind]}${at}`;
          const front = await UpdateFront.start();
          fronts.set(device, { front, kind });
          if (kind === "power_shelf") front.versions.set("PMC_0", "1.0");
          if (kind === "compute") await addTray(id, device, front);
          else addChassis(front, kind === "switch" ? "MGX_NVSwitch_0" : "powershelf", device);
          if (kind === "switch") await addOther("switches", id, device, front);
          if (kind === "power_shelf") await addOther("power_shelves", id, device, front);
        }
      await racks.putOnRecord(id);
      await racks.until(id, "ready");
    },
    async request(rackId, activities = UPGRADE) {
      const scope = { machine_ids: [], switch_ids: [], power_shelf_ids: [] };
      await startRackMaintenance(deps, tester, { rackId, scope, activities });
    },
    finish(id) {
      const { front, kind } = frontOf(id);
      front.versions.set(PARTS[kind], WANTED);
      standIn.jobOf(id).state = "completed";
    },
    children: (rackId) => listChildren(db, rackId),
    async close() {
      await Promise.all([...fronts.values()].map(({ front }) => front.close()));
    },
  };
}
