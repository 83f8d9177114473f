import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { createFakeShelves } from "../../../../test/support/cli/fake-shelves.ts";
import { createFakeTerminal, noted, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

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
  urgency: 1,
  members: [
    {
      ...{ kind: "machine", id: "m-2", state: "ready", slot: "2", assigned: "yes" },
      wantedFirmware: "fw-v2.1",
      firmware: [{ component: "bmc", installed: "2.1", wanted: "2.1" }],
    },
    {
      ...{
        kind: "machine",
        id: "m-3",
        state: "not_reached",
        slot: "3",
        assigned: "no",
        why: "its BMC does not answer",
      },
      wantedFirmware: "fw-v2.1",
      firmware: [
        { component: "bmc", installed: "2.0", wanted: "2.1" },
        { component: "bios", installed: "", wanted: "7" },
      ],
    },
  ],
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
  expect(out).toMatch(/Since: .*1m ago/);
  expect(out).toMatch(/Firmware: +fw-v2.1: 1 of 2 devices have it\n/);
  expect(out).toMatch(/Last request: +maintenance by pat .*: failed – m-3: off/);
  expect(out).toMatch(/Explained by: +millwright explain rack rack-1/);
  // What is not ready stands above what is.
  expect(out).toMatch(/m-3 +not_reached +3 .*bmc 2.0 → 2.1 +its BMC does not answer\n.*m-2 +ready +2 +yes +as wanted/);
});

test("racks that need somebody stand first, and rack-2 before rack-10", async () => {
  const asked: string[] = [];
  const racks = [
    { ...RACK, id: "rack-10", urgency: 0 },
    { ...RACK, id: "rack-2", urgency: 0 },
    { ...RACK, id: "rack-30", urgency: 3, state: "error", error: "tray m-7 failed" },
  ];
  const { out } = await runAgainst(
    (router) => router.service(RackService, { listRacks: ({ orderBy }) => ({ ...noted(asked, orderBy), racks }) }),
    "rack list -o csv",
  );
  expect(asked).toEqual(["urgency desc, id"]);
  expect(out.match(/^rack-\d+/gm)).toEqual(["rack-30", "rack-2", "rack-10"]);
});

test("a list of racks fits a terminal of 120 characters, whatever each waits for", async () => {
  const racks = [{ ...RACK, id: "rack-with-a-long-name-17", reason: "waiting for ".repeat(40) }];
  const { out } = await runAgainst(
    (router) => router.service(RackService, { listRacks: () => ({ racks }) }),
    "rack list",
    {
      isTTY: true,
      columns: 120,
    },
  );
  expect(
    Math.max(
      ...stripVTControlCharacters(out)
        .split("\n")
        .map((line) => line.length),
    ),
  ).toBeLessThanOrEqual(120);
});

test("--watch shows a rack again when it or one of its devices changes", async () => {
  const events = createFakeShelves();
  let ready = 17;
  const rack = () => ({ ...RACK, counts: [{ kind: "compute tray", have: 18, ready, expected: 18 }] });
  const terminal = createFakeTerminal({ now: new Date(60_000) });
  const running = runAgainst(
    (router) => {
      events.routes(router);
      router.service(RackService, { getRack: () => ({ rack: rack() }) });
    },
    "rack show rack-1 --watch -o json",
    { terminal },
  );
  await terminal.printed('"ready":17');
  ready = 18;
  events.emit({ kind: "host_reprovision", id: "m-3", type: "transition" });
  await terminal.printed('"ready":18');
  terminal.interrupt();
  expect((await running).code).toBe(130);
});

test("--watch of the list prints a line for each rack that changes, and none for racks that the filter leaves out", async () => {
  const events = createFakeShelves();
  const states = new Map([
    ["rack-1", "ready"],
    ["rack-2", "ready"],
  ]);
  const terminal = createFakeTerminal({ now: new Date(60_000) });
  const running = runAgainst(
    (router) => {
      events.routes(router);
      router.service(RackService, {
        listRacks: ({ filter }) => ({
          racks: [...states]
            .filter(([id, state]) => state === "ready" && (!filter.includes("id=") || filter.endsWith(`id=${id}`)))
            .map(([id, state]) => ({ ...RACK, id, state })),
        }),
        getRack: ({ id }) => ({ rack: { ...RACK, id, state: states.get(id) ?? "" } }),
      });
    },
    ["rack", "list", "--watch", "--filter", "state=ready", "-o", "csv"],
    { terminal },
  );
  await terminal.printed("rack-2,ready");
  events.emit({ kind: "switch", id: "sw-1", type: "transition" });
  states.set("rack-1", "maintenance");
  events.emit({ kind: "rack", id: "rack-1", type: "transition" });
  await terminal.printed("rack-1,maintenance");
  terminal.interrupt();
  expect((await running).out.match(/^rack-\d,\w+/gm)).toEqual(["rack-1,ready", "rack-2,ready", "rack-1,maintenance"]);
});

test("a label is added to what a rack is described by, with the version that was read", async () => {
  const sent: unknown[] = [];
  const { code, out } = await runAgainst(
    (router) =>
      router.service(Forge, {
        findRacksByIds: ({ rackIds }) => ({
          racks: rackIds.map((id) => ({
            id,
            version: "V1-T7",
            metadata: { name: "rack-1", labels: [{ key: "hall" }] },
          })),
        }),
        updateRackMetadata: (request) => noted(sent, request),
      }),
    "rack metadata add-label rack-1 --key row --value 7",
  );
  expect({ code, out }).toEqual({ code: 0, out: "Metadata of rack rack-1 updated.\n" });
  expect(sent).toMatchObject([
    {
      rackId: { id: "rack-1" },
      ifVersionMatch: "V1-T7",
      metadata: { labels: [{ key: "hall" }, { key: "row", value: "7" }] },
    },
  ]);
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

test("switches and power shelves are called by their names, too", async () => {
  const sent: unknown[] = [];
  const { code, err } = await runAgainst((router) => {
    router.service(RackService, {
      startRackMaintenance: (request) => ({ ...noted(sent, request), requestId: "r1" }),
    });
    router.service(Forge, {
      findSwitchesByIds: ({ switchIds }) => ({
        switches: switchIds.filter(({ id }) => id === "sw-9").map((id) => ({ id })),
      }),
      findSwitches: ({ name }) => ({ switches: name === "rack-1-switch-1" ? [{ id: { id: "sw-1" } }] : [] }),
      findPowerShelvesByIds: () => ({}),
      findPowerShelves: ({ name }) => ({ powerShelves: name === "rack-1-shelf-2" ? [{ id: { id: "ps-2" } }] : [] }),
    });
  }, "rack maintenance start -r rack-1 --switch-ids rack-1-switch-1,sw-9 --power-shelf-ids rack-1-shelf-2");
  expect(code, err).toBe(0);
  expect(sent[0]).toMatchObject({ switchIds: ["sw-1", "sw-9"], powerShelfIds: ["ps-2"] });
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
