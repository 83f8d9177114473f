import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { ExplainResponse } from "../../../contract/millwright/v1/explain_pb.js";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { createRackFirmware } from "../../../src/services/rack-firmware/rack-firmware.ts";
import { listRackFirmware } from "../../../src/store/rack-firmware/rack-firmware.ts";
import { eventually } from "../../support/eventually.ts";
import { carryOut } from "../../support/explain-bench.ts";
import { RACK_FAULTS, type RackFault } from "../../support/racks/rack-faults.ts";
import { type RackSite, startRackSite, type TinyRack } from "../../support/racks/rack-site.ts";
import { tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/**
 * What goes wrong with a rack: it ends in a state that says why, and the first command that `explain rack` suggests, as it stands there,
 * changes that, once hands have put right what no command can.
 */
vi.setConfig({ maxConcurrency: 30 }); // each test does little but wait

const NEWER = "fw-v2.1-liteon";
const LATE = "fw-late-liteon";
const BMC = { old: "1.09.2", newer: "1.10.0" };
const trayOf = (rack: string, number = 1) => `m-${rack.replaceAll("-", "")}-${String(number).padStart(2, "0")}`;
/** What most rows ask for: the BMC of one tray gets the newer firmware. */
const upgrade = (rack: string, firmware = NEWER) =>
  `millwright rack maintenance start --rack ${rack} --machine-ids ${trayOf(rack)} --activities firmware-upgrade --firmware-version ${firmware} --components bmc`;

interface Met {
  readonly rack: string;
  readonly mend: () => Promise<void>;
  readonly explained: ExplainResponse;
}

interface Row {
  readonly rack: string;
  readonly title: string;
  readonly of?: Omit<TinyRack, "id">;
  /** A fault of the simulator at the first tray. */
  readonly fault?: { readonly type: RackFault | "hang" | "wrong_credentials"; readonly [option: string]: unknown };
  /** Absent: the newer firmware for the BMC of the first tray. */
  readonly asks?: string;
  /** Until the rack has ended its work: what else has to happen. */
  readonly meanwhile?: () => Promise<void>;
  readonly code: unknown;
  /** What the rack's cause says. */
  readonly says: RegExp;
  /** The first command, as it stands there; a run's id is left out. */
  readonly first: string;
  /** After hands have put right what no command can, and the first command was given. Absent: it is ready. */
  readonly helps?: (met: Met) => Promise<void>;
  /** What was written to the first tray, by its own log, once all is well. */
  readonly flashed: readonly string[];
}

let site: RackSite;
let files: Server;
/** Whether the file of the late one is there. */
let areFilesThere = false;

beforeAll(async () => {
  files = createServer(({ url = "" }, response) => {
    const id = url.slice(1);
    if (id === LATE && !areFilesThere) response.writeHead(404).end();
    else response.end(imageOf(id));
  });
  await new Promise<void>((resolve) => files.listen(0, "127.0.0.1", resolve));
  // A flash takes 1.5 s, and a BMC is asked for 40 s whether it is still busy. No deadline of a good one is near; those of bad ones are let pass.
  const racks = [...ROWS.map(({ rack, of }) => ({ id: rack, ...of })), ...OTHERS];
  site = await startRackSite({ racks, speed: 400, flashDeadline: minutes(4) });
  await Promise.all(Object.keys(OWN_RECORDS).map(addRecord));
}, 240_000);
afterAll(async () => {
  await site?.close();
  files?.close();
});

/** What the records of this file consist of: an image for the BMC of trays, of which one thing is wrong. */
const OWN_RECORDS: Readonly<Record<string, { readonly model: string; readonly hardwareType: string }>> = {
  "fw-wrong-liteon": { model: "OTHER", hardwareType: "gb200-liteon" },
  "fw-v2.1-standard": { model: "GB-2U-96C", hardwareType: "gb200-standard" },
  [LATE]: { model: "GB-2U-96C", hardwareType: "gb200-liteon" },
};
const imageOf = (id: string) => Buffer.from(`MILLWRIGHT-FW ${OWN_RECORDS[id]?.model} bmc ${BMC.newer}\n${id}`);
const stateOf = async (id: string) => (await listRackFirmware(site.db, { ids: [id] }))[0]?.state.name;

async function addRecord(id: string): Promise<void> {
  const Location = `http://127.0.0.1:${(files.address() as AddressInfo).port}/${id}`;
  const Sha256 = createHash("sha256").update(imageOf(id)).digest("hex");
  const file = { Location, FileName: `${id}.bin`, Type: "Firmware", Sha256, Size: imageOf(id).length };
  const target = "/redfish/v1/UpdateService/FirmwareInventory/bmc";
  const bmc = { Component: "BMC", Version: BMC.newer, Activation: "none", Target: target, Locations: [file] };
  const BoardSKUs = [{ Type: "Compute Node", Components: { Firmware: [bmc] } }];
  const { hardwareType = "" } = OWN_RECORDS[id] ?? {};
  const configJson = JSON.stringify({ Id: id, BoardSKUs });
  await createRackFirmware(site.deps, tester, { configJson, token: "NOAUTH", hardwareType });
  const becomes = id === LATE ? "failed" : "available";
  await eventually(async () => (await stateOf(id)) === becomes, { what: `${id} is ${becomes}` });
}

const explainRack = (id: string) => site.explain("rack", id);
const firstOf = ({ nextCommands }: ExplainResponse) => nextCommands[0]?.command ?? "";
const flashesOf = async (device: string) =>
  (await site.truth(device)).flashes.map(({ component, to, outcome }) => `${component} ${to} ${outcome}`);
const activeRunOn = async (kind: string, id: string) => {
  const [run] = await site.db.query<{ id: string }>(
    "select id from runs where target_kind = $1 and target_id = $2 and state = 'RUNNING'",
    [kind, id],
  );
  return run?.id;
};

const untilFlashing = (tray: string) =>
  eventually(async () => (await site.truth(tray)).flashes.some(({ outcome }) => outcome === "running"), {
    what: `${tray} is being flashed`,
  });
const untilFlashed = (tray: string) =>
  eventually(async () => (await site.truth(tray)).flashes.some(({ outcome }) => outcome === "completed"), {
    what: `${tray} was flashed`,
  });

/** A flash whose end nobody can read: its run holds the tray until that is released, and what is done is not done again. */
async function releases({ rack, mend, explained }: Met): Promise<void> {
  const runId = firstOf(explained).split(" ").at(-1) ?? "";
  await eventually(async () => (await activeRunOn("machine", trayOf(rack))) === undefined, {
    what: `${runId} has ended`,
  });
  await mend();
  const again = await explainRack(rack);
  expect(firstOf(again)).toBe(upgrade(rack));
  await carryOut(site, firstOf(again));
  await site.until(rack, "ready");
}

/** What the run on a device waits for says so. */
const untilTold = (tray: string, words: string) => {
  const told = async () => {
    const runId = await activeRunOn("machine", tray);
    return runId === undefined ? [] : (await site.explain("run", runId)).waitingFor;
  };
  return eventually(async () => (await told()).some((each) => each.includes(words)), {
    what: `${tray}: ${words}`,
    seen: async () => JSON.stringify(await told()),
  });
};

const ONCE = [`bmc ${BMC.newer} completed`];

const ROWS: readonly Row[] = [
  {
    rack: "stuck",
    title: "a flash that is stuck at 60 %",
    fault: { type: "flash_stuck", percent: 60 },
    meanwhile: async () => {
      await untilFlashing(trayOf("stuck"));
      await untilTold(trayOf("stuck"), "60 %");
      await site.letTimePass("machine", trayOf("stuck"));
    },
    code: "firmware_unproven",
    says: /m-stuck-01: unproven, run \S+ goes on: .*60 %/,
    first: "millwright run cancel <run>",
    helps: releases,
    flashed: ONCE,
  },
  {
    rack: "silent",
    title: "a BMC that is unreachable after the flash",
    fault: { type: "unreachable_after_flash", ms: 86_400_000 },
    meanwhile: async () => {
      const tray = trayOf("silent");
      await untilFlashed(tray);
      // Nobody is called while its rack works on it.
      await becomes(tray, { status: true, reason: "RackAtWork" });
      await site.letTimePass("machine", tray);
    },
    code: "firmware_unproven",
    says: /m-silent-01: unproven, run \S+ goes on/,
    first: "millwright run cancel <run>",
    helps: async (met) => {
      await becomes(trayOf("silent"), { status: true, reason: "BmcAnswers" });
      await releases(met);
    },
    flashed: ONCE,
  },
  {
    rack: "liar",
    title: "a task that says Completed while the version stays",
    fault: { type: "flash_lies" },
    code: "firmware_not_applied",
    says: /m-liar-01: .*says that the update is complete, and shows bmc 1\.09\.2, wanted 1\.10\.0/,
    first: upgrade("liar"),
    flashed: [...ONCE, ...ONCE],
  },
  {
    rack: "failing",
    title: "a flash that fails",
    fault: { type: "flash_fails" },
    code: "firmware_task_failed",
    says: /m-failing-01: .*the component did not accept what was written/,
    first: upgrade("failing"),
    flashed: [`bmc ${BMC.newer} failed`, ...ONCE],
  },
  {
    rack: "wrong",
    title: "an image for other hardware, which the BMC accepts",
    fault: { type: "flash_wrong_image_accepted" },
    asks: upgrade("wrong", "fw-wrong-liteon"),
    code: "firmware_not_applied",
    says: /m-wrong-01: .*shows bmc no version, wanted 1\.10\.0/,
    // The default firmware, and not the same once more.
    first: `millwright rack maintenance start --rack wrong --machine-ids m-wrong-01 --activities firmware-upgrade --components bmc`,
    flashed: [...ONCE, `bmc ${BMC.old} completed`],
  },
  {
    rack: "busy",
    title: "a BMC that is busy whenever it is asked",
    fault: { type: "update_busy" },
    code: "busy",
    says: /m-busy-01: .*temporarily unavailable/,
    first: upgrade("busy"),
    flashed: ONCE,
  },
  {
    rack: "hung",
    title: "a BMC that hangs",
    fault: { type: "hang" },
    code: "timed_out",
    says: /m-hung-01: .*did not answer/,
    first: upgrade("hung"),
    flashed: ONCE,
  },
  {
    rack: "shut",
    title: "a BMC that rejects the credentials",
    fault: { type: "wrong_credentials" },
    // Checks of the machine are rejected as well, so that its credentials may not be tried any more.
    code: expect.stringMatching(/^(credentials_rejected|sign_in_stopped)$/),
    says: /m-shut-01: .*credentials/,
    first: "millwright machine set-credentials m-shut-01 --bmc-username <name>",
    helps: async ({ rack }) => {
      const again = await explainRack(rack);
      await carryOut(site, again.nextCommands[1]?.command ?? "");
      await site.until(rack, "ready");
    },
    flashed: ONCE,
  },
  {
    rack: "off",
    title: "a tray that is off",
    meanwhile: async () => {
      // Its BMC is up, and takes the firmware. That it is off is found when the rack is validated.
      await site.until("off", "validating");
      await eventually(() => activeRunOn("machine", "m-off-01"), { what: "the tray is validated" });
      await site.letTimePass("machine", "m-off-01");
    },
    code: "device_unfit",
    says: /m-off-01: .*the power is off, wanted on/,
    first: "millwright rack maintenance start --rack off --machine-ids m-off-01 --activities power-sequence",
    flashed: ONCE,
  },
  {
    rack: "unknown",
    title: "firmware that nobody knows",
    asks: upgrade("unknown", "fw-v2.1"),
    code: "firmware_unknown",
    says: /there is no firmware fw-v2\.1;/,
    first: upgrade("unknown"),
    flashed: ONCE,
  },
  {
    rack: "mismatch",
    title: "firmware for other hardware",
    asks: upgrade("mismatch", "fw-v2.1-standard"),
    code: "firmware_mismatch",
    says: /fw-v2\.1-standard is for hardware type gb200-standard, and the rack's is gb200-liteon/,
    first: upgrade("mismatch"),
    flashed: ONCE,
  },
];

const OTHERS: readonly TinyRack[] = [
  { id: "late" },
  { id: "renewed", profile: ["new_certificate_after_flash"] },
  { id: "lost" },
  { id: "partial", trays: 3 },
  { id: "ended", trays: 2 },
  { id: "waived" },
  { id: "fabric", switches: 2, broken: { device: "fabric-switch-*", fault: { type: "fabric_never_configured" } } },
];

interface Told {
  readonly type: string;
  readonly status: boolean;
  readonly reason: string;
}
const becomes = (machine: string, wanted: { status: boolean; reason?: string }) =>
  eventually(
    async () => {
      const [row] = await site.db.query<{ conditions: readonly Told[] }>(
        "select conditions from machines where id = $1",
        [machine],
      );
      const told = row?.conditions.find(({ type }) => type === "BMCReachable");
      return told?.status === wanted.status && (wanted.reason === undefined || told.reason === wanted.reason);
    },
    { what: `BMCReachable of ${machine} is ${JSON.stringify(wanted)}` },
  );

const account = async (machineId: string) => {
  const all = await site.control<readonly { machine_id: string; bmc_username: string; bmc_password: string }[]>(
    "GET",
    "/inventory/machines",
  );
  return all.find(({ machine_id }) => machine_id === machineId);
};

describe.concurrent("ends in a state that says why, and the first command that is suggested helps:", () => {
  test.each(ROWS.map((row) => [row.title, row] as const))(
    "%s",
    async (_title, row) => {
      const { rack, fault, asks = upgrade(rack) } = row;
      const tray = trayOf(rack);
      if (rack === "off") await site.control("POST", `/devices/${tray}/power`, { power: "off" });
      const mend = fault ? await site.break({ device: tray, fault }) : async () => {};
      await carryOut(site, asks);
      await row.meanwhile?.();
      const { state, lastMaintenanceRequest, maintenanceRequest } = await site.until(rack, "error", 120_000);
      expect(state.failure).toMatchObject({ code: row.code });
      expect(state.cause).toMatch(row.says);
      expect(maintenanceRequest).toBeNull();
      expect(lastMaintenanceRequest?.outcome).toBe(row.code === "device_unfit" ? "completed" : "failed");
      const explained = await explainRack(rack);
      expect(explained.headline).toMatch(row.says);
      expect(firstOf(explained).replace(/ run-\S+$| [0-9a-f-]{20,}$/, " <run>")).toBe(row.first);
      if (row.code === "firmware_unproven") await becomes(tray, { status: rack !== "silent" });
      await mend();
      const { bmc_username = "", bmc_password } = (await account(tray)) ?? {};
      await carryOut(site, firstOf(explained), { "<name>": bmc_username }, bmc_password);
      if (row.helps) await row.helps({ rack, mend: async () => {}, explained });
      else await site.until(rack, "ready");
      expect((await explainRack(rack)).headline).toBe(`rack ${rack} is ready; nothing is wrong`);
      expect(await flashesOf(tray)).toEqual(row.flashed);
    },
    240_000,
  );

  test("a BMC that shows another certificate after its flash is trusted once somebody accepts it, as is suggested", async () => {
    const tray = trayOf("renewed");
    await carryOut(site, upgrade("renewed"));
    await untilFlashed(tray);
    const first = async () => firstOf(await explainRack("renewed"));
    await eventually(async () => (await first()).startsWith(`millwright machine accept-certificate ${tray} `), {
      what: "it is suggested to accept the certificate",
      seen: async () => JSON.stringify((await explainRack("renewed")).nextCommands),
    });
    await becomes(tray, { status: true, reason: "RackAtWork" });
    await carryOut(site, await first());
    await site.until("renewed", "ready");
    expect(await flashesOf(tray)).toEqual(ONCE);
  }, 240_000);

  test("a task that the BMC loses is made up for by the version that it shows", async () => {
    await site.break({ device: trayOf("lost"), fault: { type: "task_lost" } });
    await carryOut(site, upgrade("lost"));
    await eventually(async () => (await site.rack("lost")).lastMaintenanceRequest?.outcome === "completed", {
      what: "the maintenance is completed",
    });
    await site.until("lost", "ready");
    expect(await flashesOf(trayOf("lost"))).toEqual(ONCE);
  }, 120_000);

  test("firmware that is not available is skipped; it is downloaded as is suggested, and then flashed as is suggested", async () => {
    await carryOut(site, upgrade("late", "fw-late-liteon"));
    const ended = async () => (await site.rack("late")).lastMaintenanceRequest;
    await eventually(ended, { what: "the maintenance has ended" });
    await site.until("late", "ready");
    expect(await ended()).toMatchObject({
      outcome: "completed",
      message: "firmware_upgrade skipped: firmware fw-late-liteon is not available",
    });
    const explained = await explainRack("late");
    expect(explained.headline).toMatch(/wrote no firmware, since firmware fw-late-liteon is not available/);
    expect(firstOf(explained)).toBe("millwright rack-firmware download fw-late-liteon");
    areFilesThere = true;
    await carryOut(site, firstOf(explained));
    await eventually(async () => (await stateOf("fw-late-liteon")) === "available", { what: "it is available" });
    const again = firstOf(await explainRack("late"));
    expect(again).toBe(upgrade("late", "fw-late-liteon"));
    await carryOut(site, again);
    await eventually(async () => (await flashesOf(trayOf("late"))).length > 0, { what: "it is flashed" });
    await site.until("late", "ready");
    expect(await flashesOf(trayOf("late"))).toEqual(ONCE);
  }, 120_000);

  test("a tray that fails among good ones is named with why, and is the only one that is flashed again", async () => {
    const trays = [1, 2, 3].map((number) => trayOf("partial", number));
    const mend = await site.break({ device: trayOf("partial", 2), fault: { type: "flash_fails" } });
    await carryOut(
      site,
      `millwright rack maintenance start --rack partial --machine-ids ${trays.join(",")} --activities firmware-upgrade --firmware-version ${NEWER} --components bmc`,
    );
    const { state } = await site.until("partial", "error", 120_000);
    expect(state.cause).toMatch(/m-partial-02: update_bmc: .*did not accept what was written/);
    expect(state.cause).not.toMatch(/m-partial-0[13]/);
    await mend();
    await carryOut(site, firstOf(await explainRack("partial")));
    await site.until("partial", "ready");
    expect(await Promise.all(trays.map(flashesOf))).toEqual([ONCE, [`bmc ${BMC.newer} failed`, ...ONCE], ONCE]);
  }, 240_000);

  test("a fabric that is never configured fails the rack when its time is over, by the switches that do not report it", async () => {
    await eventually(async () => (await site.rack("fabric")).state.phase === "wait_for_fabric_status", {
      what: "the fabric is awaited",
      within: 120_000,
    });
    await site.letTimePass("rack", "fabric");
    const { state, switches } = await site.until("fabric", "error");
    expect(state.failure).toMatchObject({ code: "fabric_not_configured" });
    for (const { id } of switches) expect(state.cause).toContain(id);
    const explained = await explainRack("fabric");
    expect(firstOf(explained)).toBe("millwright rack maintenance start --rack fabric");
    const faults = await site.control<readonly { id: string; device: string }[]>("GET", "/faults");
    for (const { id, device } of faults)
      if (device.startsWith("fabric-")) await site.control("DELETE", `/faults/${id}`);
    await carryOut(site, firstOf(explained));
    await site.until("fabric", "ready", 120_000);
  }, 240_000);
});

describe.concurrent("a maintenance that is terminated", () => {
  test("in the middle of a flash lets it end before anybody else gets the tray, and says how each was left", async () => {
    const [tray, other] = [trayOf("ended", 1), trayOf("ended", 2)];
    const goOn = await site.break({ device: tray, fault: { type: "flash_stuck", percent: 50 } });
    await carryOut(
      site,
      `millwright rack maintenance start --rack ended --machine-ids ${tray},${other} --activities firmware-upgrade --firmware-version ${NEWER} --components bmc`,
    );
    await untilFlashing(tray);
    await untilFlashed(other);
    const { runId } = await site.runs.startRun({ requestId: "during", machineId: tray, type: "REBOOT" });
    const pending = async () => (await site.explain("run", runId)).headline;
    await eventually(async () => /is PENDING behind rack ended/.test(await pending()), {
      what: "it waits for the rack",
      seen: pending,
    });
    const terminate = "millwright rack maintenance terminate ended";
    const suggested = async () => (await explainRack("ended")).nextCommands.map(({ command }) => command);
    expect(await suggested()).toContain(terminate);
    await carryOut(site, terminate);
    expect(await suggested(), "it is being terminated").not.toContain(terminate);
    await untilTold(tray, "the run is canceled when this has ended");
    expect((await site.runs.getRun({ runId })).phase).toBe(Run_Phase.PENDING);
    expect((await site.rack("ended")).state.name).toBe("maintenance");
    expect((await site.truth(tray)).flashes).toMatchObject([{ outcome: "running" }]);
    const wentOn = Math.floor(Date.now() / 1_000);
    await goOn();
    const { state } = await site.until("ended", "error");
    expect(state).toMatchObject({ origin: "activity", failure: { code: "terminated" } });
    // All of both was proven, although the run on the first was being canceled.
    expect(state.cause).toBe(`terminated; ${tray}, ${other}: firmware_upgrade done`);
    const left = await site.db.query<{ state: string }>("select state from host_reprovisions where id = any($1)", [
      [tray, other],
    ]);
    expect(left.map((each) => each.state)).toEqual(["ready", "ready"]);
    await eventually(async () => (await site.runs.getRun({ runId })).phase > Run_Phase.RUNNING, { what: "it ends" });
    const run = await site.runs.getRun({ runId });
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(await flashesOf(tray)).toEqual(ONCE);
    expect(await flashesOf(other)).toEqual(ONCE);
    expect(Number(run.startedAt?.seconds ?? 0), "nobody else had the tray before").toBeGreaterThanOrEqual(wentOn);
  }, 240_000);

  test("while a BMC is busy begins no flash any more", async () => {
    const tray = trayOf("waived");
    const goOn = await site.break({ device: tray, fault: { type: "update_busy" } });
    await carryOut(site, upgrade("waived"));
    const childIs = async (words: string) => {
      const runId = await activeRunOn("machine", tray);
      if (runId === undefined) return false;
      const [row] = await site.db.query<{ said: boolean }>(
        "select exists (select from run_logs where run_id = $1 and convert_from(data, 'utf8') like $2) as said",
        [runId, `%${words}%`],
      );
      return row?.said;
    };
    await eventually(() => childIs("is busy"), { what: "the BMC was asked" });
    await carryOut(site, "millwright rack maintenance terminate waived");
    const { state } = await site.until("waived", "error");
    expect(state).toMatchObject({ failure: { code: "terminated" } });
    expect(state.cause).toContain(tray);
    await goOn();
    expect(await activeRunOn("machine", tray)).toBeUndefined();
    expect(await flashesOf(tray)).toEqual([]);
  }, 120_000);
});

test("every fault of firmware and the fabric that the simulator knows is met with here", () => {
  const met = [...ROWS.map(({ fault }) => fault?.type), "task_lost", "fabric_never_configured"];
  expect(RACK_FAULTS.filter((fault) => !met.includes(fault))).toEqual([]);
});
