import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { RunService as AllRunsService, RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import type { SeededOrder } from "../../../src/capabilities/seeds/seeded-media.ts";
import { createSeededMedia } from "../../../src/providers/seeds/seeded-media.ts";
import { installerMark } from "../../../src/runs/seeds/seed-place.ts";
import { createCloudInit, deleteCloudInit } from "../../../src/services/catalog/cloud-init.ts";
import { createImage } from "../../../src/services/catalog/images.ts";
import { createPlan } from "../../../src/services/run/plans.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, serveSeeds, startRunBench, startRunSurface, tester } from "../../support/run-bench.ts";

/** Machines whose BMCs download media, and whose installers see nothing of a medium's address. */
const HIDING = ["media_downloaded", "medium_url_hidden"];
const SECOND = "/redfish/v1/Managers/bmc/VirtualMedia/Cd2/Actions/VirtualMedia.InsertMedia";

let bench: RunBench;
let web: Server;
let unused: string[];
let plans = 0;
beforeAll(async () => {
  bench = await startRunBench({ servesSeeds: true });
  const [known] = await bench.control<{ digest: string; served_at: string }[]>("GET", "/images");
  const medium = Buffer.from(await (await fetch(known?.served_at ?? "")).arrayBuffer());
  web = createServer((request, response) => serveImage(medium, request, response)).listen(0, "127.0.0.1");
  await once(web, "listening");
  const at = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  const image = { kind: "iso", digest: known?.digest ?? "", successProof: "ssh" };
  const location = `${at}/ubuntu-22.04-k8s.iso`;
  for (const seed of ["", "nocloud", "kickstart"])
    await createImage(bench.deps, tester, { ...image, name: `image-${seed || "without"}`, location, seed });
  for (const [name, place, seedOn] of [
    ["image-either", location, "either"],
    ["image-inside", location, "image"],
    ["image-held", `${at}/held/ubuntu-22.04-k8s.iso`, "either"],
    ["image-apart", `${at}/held/apart/ubuntu-22.04-k8s.iso`, "either"],
    ["image-replaced", `${at}/replaced/ubuntu-22.04-k8s.iso`, "either"],
    ["image-text", `${at}/text/ubuntu-22.04-k8s.iso`, "either"],
    ["image-gone", `${at}/gone/ubuntu-22.04-k8s.iso`, "either"],
  ] as const)
    await createImage(bench.deps, tester, { ...image, name, location: place, seed: "nocloud", seedOn });
  await createCloudInit(bench.deps, tester, { name: "mine", content: "#cloud-config\npackages: [kept]\n" });
  unused = bench.simulated.map(({ machine_id }) => machine_id);
});
afterAll(async () => {
  web.close();
  await bench.close();
});

interface Hold {
  isMeant(range: string): boolean;
  take(answer: () => void): void;
}
const holds: Hold[] = [];
/** Keeps the next request for such a range of image-held waiting, once. */
function holdNext(isMeant: Hold["isMeant"]): Promise<() => void> {
  return new Promise((take) => holds.push({ isMeant, take }));
}

/** A plain web server, which knows one image and answers ranges. */
function serveImage(medium: Buffer, { url = "", headers }: IncomingMessage, response: ServerResponse): void {
  if (url.startsWith("/gone/")) return void response.writeHead(404).end();
  const hold = holds.find(({ isMeant }) => url.startsWith("/held/") && isMeant(headers.range ?? ""));
  if (hold !== undefined) {
    holds.splice(holds.indexOf(hold), 1);
    return void hold.take(() => serveImage(medium, { url, headers } as IncomingMessage, response));
  }
  if (url.startsWith("/text/")) return void response.writeHead(206, { "content-range": "bytes 0-0/4" }).end("t");
  const [, from, to = ""] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? "") ?? [];
  // Its directories are read when the run is started and when its step begins; all of it is read for the BMC alone.
  const isReplaced = url.startsWith("/replaced/") && from === "0" && Number(to) > 0;
  response.setHeader("etag", isReplaced ? '"2"' : '"1"');
  if (from === undefined) return void response.end(medium);
  const last = to === "" ? medium.length - 1 : Math.min(Number(to), medium.length - 1);
  response.writeHead(206, { "content-range": `bytes ${from}-${last}/${medium.length}` });
  response.end(medium.subarray(Number(from), last + 1));
}

async function machine(profile: readonly string[] = HIDING): Promise<string> {
  const id = unused.shift();
  if (id === undefined) throw new Error("there is no machine left");
  await bench.control("PUT", `/devices/${id}/profile`, { profile });
  return id;
}

async function start(machineId: string, image: string, document = "", on: Pick<RunBench, "deps" | "runs"> = bench) {
  const planId = `plan-${++plans}`;
  const payload = { image_ref: image, cloud_init_ref: document };
  const steps = [{ name: "install", kind: "repave", payload, timeoutSeconds: 60, maxRetries: 0 }];
  await createPlan(on.deps, tester, { planId, displayName: "", steps });
  return (await on.runs.startRun({ requestId: "r", machineId, planId })).runId;
}

interface Truth {
  readonly media: string | null;
  readonly second_medium: string | null;
  readonly effects: Readonly<Record<string, number>>;
}
const truth = (id: string) => bench.control<Truth>("GET", `/devices/${id}`);

/** The way to the seed that a machine's BMC was given. */
const untilSeeded = (id: string): Promise<string> =>
  eventually(async () => (await truth(id)).second_medium ?? undefined, { what: "the seed is inserted" });

describe("an installer that cannot see the address of its medium", { timeout: 60_000 }, () => {
  test("learns from a second medium what to install, and both media are ejected", async () => {
    const id = await machine();
    const runId = await start(id, "image-nocloud", "mine");
    const url = await untilSeeded(id);
    await deleteCloudInit(bench.deps, tester, "mine"); // the run has its own
    const seed = await fetch(url);
    expect([seed.status, seed.headers.get("cache-control")]).toEqual([200, "no-store"]);
    const text = Buffer.from(await seed.arrayBuffer()).toString("latin1");
    expect(text).toContain("kept");
    expect(text).toContain("ssh-ed25519 ");
    expect(text).not.toContain("PRIVATE KEY");
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(await truth(id)).toMatchObject({
      media: null,
      second_medium: null,
      effects: { installs: 1, media_ejects: 2 },
    });
    expect((await fetch(url)).status).toBe(404);
  });

  test("that has no seed leaves a system that is not from this installation", async () => {
    const run = await bench.ended(await start(await machine(), "image-without"));
    expect(run.phase).toBe(Run_Phase.FAILED);
    expect(run.error?.message).toContain("not from this installation");
  });

  test("is not begun where its BMC cannot fetch the seed, and the way to it is shown to nobody", async () => {
    const id = await machine();
    await bench.fault({ device: id, method: "POST", path: SECOND, fault: { type: "status", status: 500 } });
    const runId = await start(id, "image-nocloud");
    const run = await bench.ended(runId, 20_000);
    expect(run.error?.message).toContain("the medium with the seed was not inserted");
    const { effects, media } = await truth(id);
    expect([media, effects.installs_started]).toEqual([null, 0]);
    const told = JSON.stringify([run, await bench.logs(runId)], (_, value) => (typeof value === "bigint" ? 0 : value));
    expect(told).not.toMatch(/seeds\/run-/);
  });
});

test("a run whose seed needs a second drive is refused where the BMC has one alone, and the preview says so; a silent BMC is left to the step", async () => {
  const id = await machine(["one_virtual_drive"]);
  const refused = await start(id, "image-nocloud").catch((error) => ConnectError.from(error));
  expect(refused).toMatchObject({ code: Code.FailedPrecondition });
  expect((refused as ConnectError).message).toContain("this BMC has one virtual drive");
  const planId = `plan-${plans}`;
  const { conflicts } = await bench.client(RunActionsService).previewRun({ machineId: id, planId });
  expect(conflicts).toEqual([expect.stringContaining("this BMC has one virtual drive")]);
  expect((await bench.runs.listRuns({ filter: `machine_id=${id}` })).runs).toEqual([]);
  expect((await bench.ended(await start(id, "image-without"))).phase).toBe(Run_Phase.SUCCEEDED);
  await bench.fault({ device: id, fault: { type: "drop" } });
  const { runId } = await bench.runs.startRun({ requestId: "silent", machineId: id, planId });
  await bench.runs.cancelRun({ runId });
});

/** An image that a process between us and its server may replace, or keep back. */
describe("an installer whose BMC has one drive", { timeout: 60_000 }, () => {
  const ONE_DRIVE = ["one_virtual_drive", ...HIDING];
  const untilInserted = (id: string): Promise<string> =>
    eventually(async () => (await truth(id)).media ?? undefined, { what: "the medium is inserted" });

  test("reads its seed in the image that we serve, in pieces, and only while it installs", async () => {
    const id = await machine(ONE_DRIVE);
    const runId = await start(id, "image-either");
    const url = await untilInserted(id);
    expect(url).toContain(`/seeds/${runId}/`);
    const [whole, again] = await Promise.all([fetch(url), fetch(url)]);
    const bytes = Buffer.from(await whole.arrayBuffer());
    expect([whole.status, whole.headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(bytes.equals(Buffer.from(await again.arrayBuffer()))).toBe(true);
    const text = bytes.toString("latin1");
    expect(text).toContain("The installation medium of ubuntu:22.04-k8s");
    expect(text).toContain("ssh-ed25519 ");
    // The machine need not reach the listener of its BMC.
    const [home = ""] = /http:\S+\/phone-home/.exec(text) ?? [];
    expect([new URL(home).pathname, text.includes(new URL(url).origin)]).toEqual([
      new URL("phone-home", url).pathname,
      false,
    ]);
    expect(text).not.toContain("PRIVATE KEY");
    const piece = await fetch(url, { headers: { range: "bytes=32768-36863" } });
    expect([piece.status, piece.headers.get("content-range")]).toEqual([206, `bytes 32768-36863/${bytes.length}`]);
    expect(Buffer.from(await piece.arrayBuffer()).equals(bytes.subarray(32_768, 36_864))).toBe(true);
    expect((await fetch(url, { method: "HEAD" })).headers.get("content-length")).toBe(String(bytes.length));
    expect((await fetch(new URL("other.iso", url))).status).toBe(404);
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(await truth(id)).toMatchObject({ media: null, second_medium: null, effects: { installs: 1 } });
    expect((await fetch(url)).status).toBe(404);
    const told = JSON.stringify([run, await bench.logs(runId)], (_, value) => (typeof value === "bigint" ? 0 : value));
    expect(told).not.toMatch(/seeds\/run-/);
  });

  test("that leaves early keeps nobody from its medium, and who reports in crowds is refused", async () => {
    const id = await machine(ONE_DRIVE);
    // The run is under way for as long as its BMC downloads the medium.
    const downloading = holdNext((range) => /^bytes=0-[1-9]/.test(range));
    const runId = await start(id, "image-held");
    const letDownload = await downloading;
    const [row] = await bench.db.query<{ url: string }>(
      `select step -> 'evidence' -> 'seed' ->> 'url' as url from runs, jsonb_array_elements(facts -> 'steps') as step
        where id = $1`,
      [runId],
    );
    // A replica that does not know the image yet.
    const seededMedia = createSeededMedia({ mayReach: () => true });
    let opens = 0;
    const counted = {
      ...seededMedia,
      open: (order: SeededOrder) => {
        opens += 1;
        return seededMedia.open(order);
      },
    };
    let [came, left] = [0, 0];
    const replica = await serveSeeds(
      { ...bench.deps, seededMedia: counted },
      {
        watch: (app) =>
          app.addHook("onRequest", async (_, reply) => {
            came += 1;
            reply.raw.once("close", () => (left += 1));
          }),
      },
    );
    try {
      const url = `${replica.httpUrl}${new URL(row?.url ?? "").pathname}`;
      const range = { range: "bytes=32768-36863" };
      const outline = holdNext((asked) => asked.startsWith("bytes=32768-"));
      const leave = new AbortController();
      const leavers = Array.from({ length: 8 }, () => fetch(url, { headers: range, signal: leave.signal }));
      const letOutline = await outline;
      await eventually(async () => came === 8, { what: "all of them have asked" });
      leave.abort();
      await Promise.allSettled(leavers);
      await eventually(async () => left === 8, { what: "all of them have left" });
      letOutline();
      expect((await fetch(url, { headers: range })).status).toBe(206);
      expect(opens).toBeLessThan(9);

      // Nobody's report is noted while another has the run.
      const home = new URL("phone-home", url).href;
      const done = new AbortController();
      await bench.db.transaction(async (tx) => {
        await lockThings(tx, [{ kind: "run", id: runId }]);
        const reports = Array.from({ length: 9 }, () => fetch(home, { method: "POST", signal: done.signal }));
        expect((await Promise.race(reports)).status).toBe(429);
        done.abort();
        await Promise.allSettled(reports);
      });
    } finally {
      letDownload();
      await replica.close();
    }
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
  });

  test("reads it at the listener for BMCs, and goes on where it began when there was none", async () => {
    const id = await machine(ONE_DRIVE);
    const downloading = holdNext((range) => /^bytes=0-[1-9]/.test(range));
    const runId = await start(id, "image-apart");
    const letDownload = await downloading;
    const [row] = await bench.db.query<{ url: string }>(
      `select step -> 'evidence' -> 'seed' ->> 'url' as url from runs, jsonb_array_elements(facts -> 'steps') as step
        where id = $1`,
      [runId],
    );
    const { origin, pathname } = new URL(row?.url ?? "");
    const listeners = await Promise.all(
      [
        { nodes: true, runs: false },
        { nodes: true, runs: { besides: origin } },
        { nodes: true, runs: { besides: "http://bmcs.example" } },
        { nodes: true, runs: { besides: null } },
        { nodes: false, runs: true },
      ].map((scope) => serveSeeds(bench.deps, { scope })),
    );
    try {
      const answers = listeners.map(({ httpUrl }) => fetch(`${httpUrl}${pathname}`, { method: "HEAD" }));
      expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([404, 404, 200, 200, 200]);
    } finally {
      letDownload();
      await Promise.all(listeners.map((each) => each.close()));
    }
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
  });

  test("is given a second medium all the same where there is a drive for it", async () => {
    const id = await machine(HIDING);
    const runId = await start(id, "image-either");
    expect(await untilSeeded(id)).toContain("/seed.iso");
    expect((await bench.ended(runId)).phase).toBe(Run_Phase.SUCCEEDED);
  });

  test("reads its seed in the image wherever the image says that its installer looks there alone", async () => {
    const id = await machine(HIDING);
    const runId = await start(id, "image-inside");
    expect(await untilInserted(id)).toContain(`/seeds/${runId}/`);
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
  });

  test("is not begun from an image that is replaced in between, and the run says why", async () => {
    const id = await machine(ONE_DRIVE);
    const runId = await start(id, "image-replaced");
    const run = await bench.ended(runId, 20_000);
    expect(run.phase).toBe(Run_Phase.FAILED);
    const [event] = await bench.db.query<{ reason: string }>(
      "select reason from journal where id = $1 and type = 'medium_refused'",
      [runId],
    );
    expect(event?.reason).toMatch(/the image at http.*ubuntu-22.04-k8s.iso (is another version|has \d+ bytes)/);
    expect((await truth(id)).effects.installs_started).toBe(0);
  });

  test.each([
    ["that is no ISO", "image-text", /is too short for an ISO 9660 volume/],
    ["that is not there", "image-gone", /there is no such file/],
  ])("is refused an image %s, when the run is started and previewed", async (_, image, why) => {
    const id = await machine(ONE_DRIVE);
    await expect(start(id, image)).rejects.toThrow(why);
    const planId = `plan-${plans}`;
    const { conflicts } = await bench.client(RunActionsService).previewRun({ machineId: id, planId });
    expect(conflicts).toEqual([expect.stringMatching(why)]);
    // With two drives nothing is read of it.
    await bench.control("PUT", `/devices/${id}/profile`, { profile: ["medium_url_hidden"] });
    const { runId } = await bench.runs.startRun({ requestId: "two", machineId: id, planId });
    await bench.runs.cancelRun({ runId });
  });
});

test("a further attempt asks for the drives that its media need, as the first did", { timeout: 60_000 }, async () => {
  const id = await machine();
  await bench.fault({ device: id, method: "POST", path: SECOND, fault: { type: "status", status: 500 } });
  const runId = await start(id, "image-nocloud");
  expect((await bench.ended(runId, 20_000)).phase).toBe(Run_Phase.FAILED);
  await bench.control("PUT", `/devices/${id}/profile`, { profile: ["one_virtual_drive"] });
  const actions = bench.client(RunActionsService);
  for (const again of [actions.rerunRun, actions.retryRun, actions.restartRunClean]) {
    const refused = await again({ runId, requestId: "again" }).catch((error) => ConnectError.from(error));
    expect(refused).toMatchObject({ code: Code.FailedPrecondition });
    expect((refused as ConnectError).message).toContain("this BMC has one virtual drive");
  }
  // Who only looks needs none.
  const adopted = await actions.adoptRun({ runId, requestId: "look" }).catch((error) => ConnectError.from(error));
  expect(String(adopted)).not.toContain("virtual drive");
});

test("a seed reaches the machines of many runs that are started at once", { timeout: 60_000 }, async () => {
  const id = await machine();
  const steps = [
    { name: "install", kind: "repave", payload: { image_ref: "image-nocloud" }, timeoutSeconds: 60, maxRetries: 0 },
  ];
  await createPlan(bench.deps, tester, { planId: "plan-of-many", displayName: "", steps });
  const asked = { requestId: "many", filter: `machine_id=${id}`, planId: "plan-of-many" };
  const { run } = await bench.client(RunActionsService).startRuns(asked);
  const runId = run?.run?.runId ?? "";
  const many = await eventually(
    async () => {
      const { run: shown } = await bench.client(AllRunsService).getRun({ runId });
      return (shown?.run?.phase ?? 0) > Run_Phase.RUNNING ? shown : undefined;
    },
    { what: "it has ended", within: 50_000 },
  );
  expect(many?.run?.phase, many?.run?.message).toBe(Run_Phase.SUCCEEDED);
  expect((await truth(id)).effects).toMatchObject({ installs: 1 });
});

describe("a seed", { timeout: 60_000 }, () => {
  test("is found by who knows the way alone, in pieces too, and only where it is", async () => {
    const id = await machine();
    const runId = await start(id, "image-nocloud");
    const url = await untilSeeded(id);
    const [directory = "", key = ""] = [new URL(".", url).href, url.split("/").at(-2)];
    const whole = Buffer.from(await (await fetch(url)).arrayBuffer());
    const piece = await fetch(url, { headers: { range: "bytes=2048-4095" } });
    expect(piece.status).toBe(206);
    expect(Buffer.from(await piece.arrayBuffer()).equals(whole.subarray(2_048, 4_096))).toBe(true);
    expect((await fetch(url, { method: "HEAD" })).headers.get("content-length")).toBe(String(whole.length));
    expect(await (await fetch(`${directory}user-data`)).text()).toContain("/etc/millwright-image");
    for (const wrong of [
      url.replace(
        key,
        key.replace(/^./, (first) => (first === "0" ? "1" : "0")),
      ),
      url.replace(key, "0"),
      url.replace(runId, "run-none"),
      url.replace(runId, `node.${id}`),
      `${directory}ks.cfg`,
      `${directory}..%2f..%2fetc%2fpasswd`,
    ])
      expect([wrong, (await fetch(wrong)).status]).toEqual([wrong, 404]);
    expect((await bench.ended(runId)).phase).toBe(Run_Phase.SUCCEEDED);
  });

  test("tells whom to call, and that the installer has begun is kept once", async () => {
    const id = await machine([...HIDING, "once_kept_as_continuous", "no_last_reset_time", "no_boot_progress"]);
    const runId = await start(id, "image-nocloud");
    const url = await untilSeeded(id);
    const runs = storeOf(allStores, "run");
    const [before] = (await runs.load(bench.db, [runId])).things;
    expect(before && (await runs.overtaken?.(bench.db, [before]))).toEqual([]);
    const home = new URL("phone-home", url).href;
    const began = () => bench.db.query("select 1 from journal where id = $1 and type = 'installer_began'", [runId]);
    await eventually(async () => (await began()).length > 0, { what: "the installer has called" });
    for (const body of ["instance_id=1", "{", "\0\0"]) {
      expect((await fetch(home, { method: "POST", body })).status).toBe(204);
      // Who is answered may end at once: a restart does not lead to the medium again.
      const [step] = await bench.db.query<{ token: string; free: string | null }>(
        `select step -> 'evidence' ->> 'token' as token, step -> 'receipt' ->> 'bootSourceFreeFor' as free
           from runs, jsonb_array_elements(facts -> 'steps') as step where id = $1`,
        [runId],
      );
      expect(step?.free).toBe(installerMark(step?.token ?? ""));
    }
    // A pass that waits for the system to come up is ended by that: the boot source is to be cleared while the installer is at work.
    expect(before && (await runs.overtaken?.(bench.db, [before]))).toEqual([runId]);
    expect((await fetch(home.replace(runId, "run-none"), { method: "POST" })).status).toBe(404);
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect((await truth(id)).effects).toMatchObject({ installs_started: 1, installs: 1 });
    expect(await began()).toHaveLength(1);
    expect((await fetch(home, { method: "POST" })).status).toBe(404);
  });
});

describe("a run with a seed is refused", () => {
  test.each([
    [
      "whose document is not what the installer reads",
      "image-kickstart",
      "cloud-init/worker-node",
      /not a kickstart file/,
    ],
    ["that needs a document and has none", "image-kickstart", "", /names none/],
    ["whose document is not there", "image-nocloud", "gone", /cloud-init document "gone", which is not there/],
  ])("%s", async (_, image, document, why) => {
    const [id = ""] = unused.slice(-1);
    await expect(start(id, image, document)).rejects.toThrow(why);
    expect((await truth(id)).effects).toMatchObject({ media_inserts: 0 });
  });

  test("where the server does not know where BMCs reach it, and on a provider that inserts no second medium", async () => {
    const surface = await startRunSurface();
    try {
      const image = {
        kind: "iso",
        location: "http://images/a.iso",
        digest: `sha256:${"0".repeat(64)}`,
        successProof: "ssh",
      };
      await createImage(surface.deps, tester, { name: "seeded", ...image, seed: "nocloud" });
      await surface.addMachine("m-bmc", "redfish");
      await surface.addMachine("m-ironic", "ironic");
      await expect(start("m-bmc", "seeded", "", surface)).rejects.toThrow(/set bmc.public_url/);
      await expect(start("m-ironic", "seeded", "", surface)).rejects.toThrow(/provider ironic inserts none/);
      // As a further attempt as well: the image was another when the first was started.
      await createImage(surface.deps, tester, { name: "changed", ...image, seed: "" });
      const runId = await start("m-bmc", "changed", "", surface);
      await surface.db.execute("update runs set state = 'FAILED' where id = $1", [runId]);
      await surface.db.execute("update images set seed = 'nocloud' where name = 'changed'");
      const actions = surface.client(RunActionsService);
      for (const again of [actions.rerunRun, actions.retryRun, actions.restartRunClean])
        await expect(again({ runId, requestId: "again" })).rejects.toThrow(/set bmc.public_url/);
    } finally {
      await surface.close();
    }
  });
});
