// @module-tag race
import { afterAll, beforeAll, describe, test, vi } from "vitest";
import { reprovisionMachine } from "../../src/services/host-reprovision/host-reprovisions.ts";
import { startRackMaintenance, terminateRackMaintenance } from "../../src/services/rack/maintenance.ts";
import { createPlan } from "../../src/services/run/plans.ts";
import { startRun } from "../../src/services/run/starts.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { type Deaths, type DeviceTruth, SimulatedRack } from "../support/racks/simulated-rack.ts";
import { tester } from "../support/run-bench.ts";

/**
 * Replicas die by kill -9 in every sub-state of a rack's maintenance: of one, which is started again each time, and of two, of which one
 * is alive. What the devices did, their own logs tell. A tray is flashed and restarted, switches and the fabric too, and the power
 * of all is switched off and on: each of it once.
 */
interface Lane extends Deaths {
  readonly title: string;
  /** Devices fetch their images; otherwise they are sent them. */
  readonly isFetched: boolean;
}

/** Of the runs on switches, shelves and trays what commands the device, and the order that is announced and not sent. */
const COMMANDING =
  /^(rack|host|machine in validate_devices|machine in (firmware_upgrade|power_off_compute), .*(announced|canceled)|switch in firmware_upgrade, (.*announced|update_bios acted)|power_shelf in firmware_upgrade, .*announced)/;
/** But for the run that the rack is to wait for. */
const ALL = /^(?!reboot-it)/;
/** Also in the middle of a file, and where the rack has to wait for its devices. */
const ALWAYS = ["stream:chunk-sent", "claims:wished"];
const SHORT: readonly Lane[] = [
  // The device knows more than is on record, and then everything is on record and nobody knows it.
  {
    title: "one replica",
    replicas: 1,
    isFetched: false,
    failPoints: ["controller:handled", ...ALWAYS],
    positions: COMMANDING,
  },
  {
    title: "two replicas",
    replicas: 2,
    isFetched: true,
    failPoints: ["committer:after", ...ALWAYS],
    positions: COMMANDING,
  },
];
const EVERY = ["controller:loaded", "controller:handled", "transitions:journaled", "committer:after"];
const LONG: readonly Lane[] = EVERY.flatMap((failPoint) =>
  ([1, 2] as const).map((replicas) => ({
    title: `${replicas} at ${failPoint}`,
    ...{ replicas, isFetched: replicas === 1, failPoints: [failPoint, ...ALWAYS], positions: ALL },
  })),
);

/** At these every pass comes by; a pass that only waits is not journaled. */
const isSeenEverywhere = ({ failPoints }: Deaths): boolean =>
  ["controller:handled", "committer:after"].some((each) => failPoints.includes(each));
const FOLLOWING = "machine in firmware_upgrade, update_bmc acted, canceled";
/** Where somebody must have died in such a lane. */
const CERTAIN = [
  "rack_firmware downloading",
  "rack discovering",
  "rack ready", // it waits for a run on its tray
  "rack_maintenance PENDING",
  "rack_maintenance RUNNING",
  "rack_maintenance, firmware_upgrade acted",
  "machine in firmware_upgrade, update_bmc announced",
  "machine in firmware_upgrade, update_bios announced",
  "machine in firmware_upgrade, activate_by_host_reset announced",
  "switch in firmware_upgrade, update_bios announced",
  "switch in firmware_upgrade, activate_by_host_reset announced",
  "power_shelf in firmware_upgrade, update_psu announced",
  "rack_maintenance, configure_nmx_cluster announced",
  "rack_maintenance, power_off_compute acted",
  "machine in power_off_compute, set_device_power announced",
  "rack_maintenance, power_off_switches acted",
  "rack_maintenance, power_on_shelves acted",
  "rack_maintenance, power_on_switches acted",
  "rack_maintenance, power_on_compute acted",
  "rack validating",
  "rack_validation PENDING",
  "machine in validate_devices RUNNING", // in the middle of validate_device
  "rack_validation, validate_devices acted", // the pass that sees the last tray validated, and validates the fabric
  FOLLOWING,
  "rack_maintenance, firmware_upgrade acted, canceled",
  "host_reprovision checking_firmware_v2",
  "host-firmware, update_bmc announced",
];

const ALL_OF = { "Compute Node": ["BMC", "BIOS"], "Switch Tray": ["BIOS"], "Power Shelf": ["PSU"] };
const TRAY = "m-rack1-01";

let bench: ProcessBench;
vi.setConfig({ maxConcurrency: 2 });
beforeAll(() => {
  bench = openProcessBench();
});
afterAll(() => bench.close());

/** Everything that a rack goes through, while replicas die. */
async function live(rack: SimulatedRack, deaths: Deaths): Promise<void> {
  const { deps, rackId } = rack;
  const { db } = rack.database;
  const holds =
    (text: string, values: readonly unknown[] = []) =>
    async () =>
      (await db.query(text, values)).length > 0;
  const until = (what: string, isOver: () => Promise<unknown>) => rack.dieUntil(what, isOver, deaths);
  const maintain = (activities: Parameters<typeof startRackMaintenance>[2]["activities"], machine_ids: string[] = []) =>
    startRackMaintenance(deps, tester, {
      rackId,
      activities,
      scope: { machine_ids, switch_ids: [], power_shelf_ids: [] },
    });

  await rack.recordFirmware("newer", ALL_OF);
  const delivered = await rack.recordFirmware("delivered", { "Compute Node": ["BMC"] });
  await until("the files are here", holds("select 1 from rack_firmware having every(state = 'available')"));

  await rack.expectRack();
  await until("the rack is ready", () => rack.isRack("ready"));

  // A run works on the tray: the rack waits for it, and then all of its power is switched off and on.
  const reboot = { name: "reboot", kind: "reboot", payload: { mode: "bmc" }, timeoutSeconds: 3_600, maxRetries: 0 };
  await createPlan(deps, tester, { planId: "reboot-it", displayName: "reboot", steps: [reboot] });
  await rack.setSpeed("slow");
  await startRun(deps, tester, { requestId: "once", machineId: TRAY, planId: "reboot-it", type: "", params: {} });
  const acted = "facts -> 'steps' -> -1 ->> 'actedAt' is not null";
  await until(
    "the tray reboots",
    holds(`select 1 from runs where machine_id = $1 and state = 'RUNNING' and ${acted}`, [TRAY]),
  );
  await maintain([{ kind: "power_sequence", operation: "cycle" }]);
  await until(
    "the rack waits for the run",
    holds("select 1 from racks where state = 'ready' and outcome ->> 'reason' like '%run%'"),
  );
  await rack.setSpeed("usual");
  await until(
    "the rack is ready again",
    async () => (await holds("select 1 from racks where maintenance_requested is null")()) && rack.isRack("ready"),
  );

  // Terminated in the middle of a flash, which goes on until its end.
  const stuck = await rack.simulator.call<{ id: string }>("POST", "/faults", {
    device: TRAY,
    fault: { type: "flash_stuck" },
  });
  await maintain([{ kind: "firmware_upgrade", firmware_version: delivered }], [TRAY]);
  const flashing = `select 1 from runs where target_id = $1 and state = 'RUNNING' and plan @> '{"steps": [{"kind": "update_firmware"}]}' and ${acted}`;
  await until("the tray is flashed", holds(flashing, [TRAY]));
  await terminateRackMaintenance(deps, tester, rackId);
  await until(
    "the flash is to be followed to its end",
    holds(`${flashing} and cancel_requested_at is not null`, [TRAY]),
  );
  if (isSeenEverywhere(deaths))
    await until("somebody dies over it", async () => rack.deaths().some((each) => each.startsWith(`${FOLLOWING} at `)));
  await rack.simulator.call("DELETE", `/faults/${stuck.id}`);
  await until("the rack is in error", () => rack.isRack("error"));

  // By itself, outside of any maintenance of the rack.
  await reprovisionMachine(deps, tester, { machineId: TRAY, reset: false });
  await until(
    "the tray has its firmware again",
    holds("select 1 from host_reprovisions where id = $1 and state = 'ready' and reprovision_requested is null", [
      TRAY,
    ]),
  );
}

const flashesOf = (devices: readonly DeviceTruth[]) =>
  devices.flatMap(({ id, flashes }) =>
    flashes.map(({ component, to, outcome }) => `${id} ${component} ${to} ${outcome}`),
  );

const counted = (devices: readonly DeviceTruth[]) =>
  Object.fromEntries(
    devices.map(({ id, effects }) => [
      id,
      Object.fromEntries(Object.entries(effects).filter(([name, count]) => count > 0 && name !== "ssh_commands")),
    ]),
  );

describe("a simulated rack", { concurrent: true, timeout: 600_000 }, () => {
  test.for(process.env.CHAOS_LONG === "1" ? LONG : SHORT)(
    "survives kill -9 in each sub-state, of $title: each device is flashed and restarted once",
    async (lane, { onTestFinished, expect }) => {
      const rack = await SimulatedRack.open(bench, {
        name: lane.title.replaceAll(/\W+/g, "-"),
        isFetched: lane.isFetched,
      });
      onTestFinished(() => rack.close());
      await live(rack, lane);
      const devices = await rack.truths();
      expect(flashesOf(devices)).toEqual([
        "rack-1-shelf-1 psu 0207 completed",
        "rack-1-switch-1 bios 0ACTV_00.01.022 completed",
        "rack-1-switch-2 bios 0ACTV_00.01.022 completed",
        `${TRAY} bmc 1.10.0 completed`,
        `${TRAY} bios U46-2.30 completed`,
        `${TRAY} bmc 1.09.2 completed`,
        `${TRAY} bmc 1.10.0 completed`,
      ]);
      const ofSwitch = { power_on_commands: 1, power_off_commands: 1, power_cycle_commands: 1, power_changes: 4 };
      expect(counted(devices)).toEqual({
        "rack-1-shelf-1": {},
        "rack-1-switch-1": { ...ofSwitch, fabric_starts: 1, configuration_changes: 1, revisions_opened: 1 },
        "rack-1-switch-2": ofSwitch,
        [TRAY]: {
          ...{ power_on_commands: 1, power_off_commands: 1, power_changes: 2, graceful_restart_commands: 1 },
          ...{ force_restart_commands: 1, resets: 4, boots: 3, manager_restarts: 3 },
        },
      });
      const { db } = rack.database;
      expect(await db.query("select * from claims")).toEqual([]);
      expect(
        await db.query(
          "select plan ->> 'workflow' as workflow, state from runs where target_kind = 'rack' order by created_at",
        ),
      ).toEqual([
        { workflow: "rack_maintenance", state: "SUCCEEDED" },
        { workflow: "rack_validation", state: "SUCCEEDED" },
        { workflow: "rack_maintenance", state: "SUCCEEDED" },
        { workflow: "rack_validation", state: "SUCCEEDED" },
        { workflow: "rack_maintenance", state: "CANCELED" },
      ]);
      const died = rack.deaths();
      if (isSeenEverywhere(lane))
        expect(CERTAIN.filter((certain) => !died.some((each) => each.startsWith(`${certain} at `)))).toEqual([]);
    },
  );
});
