import { expect, test } from "vitest";
import { RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { noted, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const RACK = {
  id: "rack-1",
  state: "created",
  stateText: "Created",
  stateSince: { seconds: 0n },
  reason: "waiting for 1 more switch",
  profile: "small",
  profileExists: true,
  counts: [
    { kind: "compute tray", have: 18, ready: 17, expected: 18, notReady: ["m-3 (its BMC does not answer)"] },
    { kind: "switch", have: 8, ready: 8, expected: 9 },
    { kind: "power shelf", have: 8, ready: 8, expected: 8 },
  ],
  firmware: "fw-v2.1",
  members: [{ kind: "machine", id: "m-3", state: "not_reached", slot: "3", assigned: "no" }],
  lastRequests: [{ id: "r1", kind: "maintenance", initiator: "pat", outcome: "failed", message: "m-3: off" }],
};
const against = (line: string) =>
  runAgainst(
    (router) => router.service(RackService, { listRacks: () => ({ racks: [RACK] }), getRack: () => ({ rack: RACK }) }),
    line,
    { now: new Date(60_000) },
  );

test("the list shows what is ready of what is expected, and what each rack waits for", async () => {
  const { out } = await against("rack list");
  expect(out).toMatch(/rack-1 +Created +1m +small +17\/18 +8\/9 +8\/8 +waiting for 1 more switch/);
});

test("a rack is shown with what is missing, its devices and its last request", async () => {
  const { out } = await against("rack show rack-1");
  expect(out).toMatch(/Switches: +8 of 9 expected, 8 ready/);
  expect(out).toMatch(/Firmware: +fw-v2.1\n/);
  expect(out).toContain("m-3 (its BMC does not answer)");
  expect(out).toMatch(/maintenance +pat .*failed +m-3: off/);
});

test("where nothing is expected, only what is there is counted", async () => {
  const counts = [{ kind: "compute tray", have: 18, ready: 17, expected: 0 }];
  const rack = { ...RACK, profile: "", counts };
  const { out } = await runAgainst(
    (router) => router.service(RackService, { getRack: () => ({ rack }) }),
    "rack show rack-1",
  );
  expect(out).toMatch(/Compute trays: +18, 17 ready/);
  expect(out).toMatch(/Profile: +none: `millwright site apply` assigns one/);
});

test("programs get all of it", async () => {
  const { out } = await against("rack show rack-1 -o json");
  expect(JSON.parse(out)).toMatchObject({ id: "rack-1", state: "created", counts: [{ expected: 18 }, {}, {}] });
});

test("a maintenance carries scope, activities and their configuration; lists take commas and spaces", async () => {
  const sent: unknown[] = [];
  const { code, out } = await runAgainst(
    (router) =>
      router.service(RackService, {
        startRackMaintenance: (request) => ({ ...noted(sent, request), requestId: "r1" }),
      }),
    "rack maintenance start -r rack-1 --machine-ids m1,m2 m3 --activities firmware-upgrade --firmware-version fw-v2.1 --reference T-1",
  );
  expect(code).toBe(0);
  expect(out).toContain("rack show rack-1");
  expect(sent[0]).toMatchObject({
    rackId: "rack-1",
    machineIds: ["m1", "m2", "m3"],
    switchIds: [],
    activities: [{ kind: "firmware_upgrade", firmwareVersion: "fw-v2.1" }],
    reference: "T-1",
    includeAssigned: false,
  });
});

test.each([
  ["an unknown activity", "--activities nvos-update", "firmware-upgrade, configure-nmx-cluster, power-sequence"],
  ["a version without its activity", "--activities power-sequence --firmware-version v", "needs firmware-upgrade"],
])("%s is refused before anything is sent", async (_, options, message) => {
  const { code, err } = await runAgainst(() => {}, `rack maintenance start --rack rack-1 ${options}`);
  expect(code).toBe(2);
  expect(err).toContain(message);
});

const PREVIEW = {
  rackId: "rack-1",
  firmware: "fw-v2.1",
  devices: [
    {
      kind: "machine",
      id: "m-1",
      components: [{ component: "bios", from: "1.0", to: "2.1", change: "flashed" }],
      disturbances: ["reboots"],
    },
    {
      kind: "machine",
      id: "m-2",
      components: [{ component: "bios", from: "2.1", to: "2.1", change: "stays" }],
    },
  ],
  stages: [
    { name: "firmware_upgrade", activity: "firmware_upgrade", devices: 2 },
    { name: "configure_nmx_cluster", activity: "configure_nmx_cluster", skipped: "not requested" },
  ],
  holders: [
    { kind: "run", id: "r-7", does: "works on it (RUNNING)", since: { seconds: 0n }, devices: ["machine m-1"] },
  ],
  durationBasis: "no maintenance of this kind has succeeded yet",
};

test("a dry run sends the same request, starts nothing, and shows what would be done; exit code 4 while somebody is in the way", async () => {
  const sent: unknown[] = [];
  const dryRun = (options: string) =>
    runAgainst(
      (router) =>
        router.service(RackService, {
          previewRackMaintenance: (request) => ({ ...noted(sent, request), ...PREVIEW }),
        }),
      `rack maintenance start --rack rack-1 --machine-ids m-1 m-2 --activities firmware-upgrade --dry-run ${options}`,
      { now: new Date(60_000) },
    );
  const { code, out } = await dryRun("");
  expect(code).toBe(4);
  expect(sent[0]).toMatchObject({ machineIds: ["m-1", "m-2"], activities: [{ kind: "firmware_upgrade" }] });
  expect(out).toMatch(/fw-v2.1: 1 components to flash, 1 stay as they are/);
  expect(out).toMatch(/m-1 +bios 1.0 → 2.1 +reboots/);
  expect(out).toMatch(/m-2 +bios stays 2.1/);
  expect(out).toMatch(/configure_nmx_cluster .*skipped: not requested/);
  expect(out).toMatch(/run r-7 +1m +works on it \(RUNNING\) +machine m-1/);
  expect(out).toContain("unknown: no maintenance of this kind has succeeded yet");
  expect(JSON.parse((await dryRun("-o json")).out)).toMatchObject({ rack_id: "rack-1", devices: [{ id: "m-1" }, {}] });
});
