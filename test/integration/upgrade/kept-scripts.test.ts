import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { MachineStatus_Phase, type Run, Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { Runbooks } from "../../../src/runs/steps/scripts/runbooks.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { wishFor } from "../../support/claims.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const PLAN = "plan-upgrade-in-place";

type Files = Readonly<Record<string, string>>;

const FOLDER = join(import.meta.dirname, "../../../runbooks");
const shipped: Files = Object.fromEntries(
  readdirSync(FOLDER)
    .filter((name) => name.endsWith(".sh"))
    .map((name) => [name, readFileSync(join(FOLDER, name), "utf8")]),
);
const changed = (name: string): Files => ({
  ...shipped,
  [name]: `${shipped[name]}\necho as the next version has it\n`,
});
const without = (name: string): Files => Object.fromEntries(Object.entries(shipped).filter(([ref]) => ref !== name));

/** What a server has read: another version of it starts with its own files, and knows nothing of the earlier ones. */
let files: Runbooks;
const runbooks = {
  find: (ref: string) => files.find(ref),
  findVersion: (ref: string, digest: string) => files.findVersion(ref, digest),
  remember: (version: Parameters<Runbooks["remember"]>[0]) => files.remember(version),
  refresh: () => files.refresh(),
  resolve: (ref: string, field: string) => files.resolve(ref, field),
  get refs() {
    return files.refs;
  },
} as unknown as Runbooks;
const becomes = (version: Files): void => {
  files = new Runbooks(version);
};

let bench: RunBench;
let unused: string[];
beforeAll(async () => {
  becomes(shipped);
  bench = await startRunBench({ site: "racks=1,joined=1", runbooks });
  unused = bench.simulated.map(({ machine_id }) => machine_id);
  // An upgrade without the restart: that takes the longest, and has no script.
  const steps = ["cordon_node.sh", "upgrade_k8s.sh", "uncordon_node.sh"].map((scriptRef) => {
    const value = { scriptRef, args: { ...(scriptRef === "upgrade_k8s.sh" && { version: "1.33.0" }) } };
    return { name: scriptRef.replace(".sh", ""), kind: { case: "ssh" as const, value } };
  });
  await bench.plans.createPlan({ plan: { planId: PLAN, steps } });
});
afterAll(() => bench.close());

/** A node that serves, and whose upgrade waits for somebody else who works on it. */
async function upgradeInFlight(): Promise<{ id: string; runId: string; goOn: () => Promise<void> }> {
  becomes(shipped);
  const id = unused.shift() ?? "";
  await bench.db.execute("update machines set state = 'IN_SERVICE' where id = $1", [id]);
  const holder = { kind: "rack", id: `rack-of-${id}` };
  const target = { kind: "machine", id };
  await bench.db.transaction(async (tx) => {
    await lockThings(tx, [holder, target]);
    await claims.acquire(tx, [wishFor(target, holder, "maintenance")]);
  });
  const { runId } = await bench.runs.startRun({ requestId: "upgrade", machineId: id, planId: PLAN });
  return {
    id,
    runId,
    goOn: () =>
      bench.db.transaction(async (tx) => {
        await lockThings(tx, [holder, target, { kind: "run", id: runId }]);
        await claims.releaseAll(tx, [holder]);
        await work.wake(tx, [{ kind: "run", id: runId }]);
      }),
  };
}

const retry = (runId: string, takeNewScripts: boolean) =>
  bench.client(RunActionsService).retryRun({ runId, requestId: `after-${runId}`, takeNewScripts });
const logOf = async (runId: string) =>
  (await bench.logs(runId)).map(({ data }) => Buffer.from(data).toString()).join("");

/** As it was found: in service, and with a node that takes work. */
async function expectInService(id: string, run: Run): Promise<void> {
  expect(run.phase, `${run.error?.message}\n${await logOf(run.runId)}`).toBe(Run_Phase.SUCCEEDED);
  await eventually(
    async () => (await bench.machines.getMachine({ machineId: id })).status?.phase === MachineStatus_Phase.IN_SERVICE,
    { what: `${id} serves` },
  );
  expect(await isCordoned(id)).toBe(false);
}

/** As the cluster says itself. */
async function isCordoned(id: string): Promise<boolean> {
  const [cluster] = await bench.control<{ api_url: string; token: string }[]>("GET", "/clusters");
  const headers = { authorization: `Bearer ${cluster?.token}` };
  const node = await (await fetch(`${cluster?.api_url}/api/v1/nodes/${id}`, { headers })).json();
  return (node as { spec: { unschedulable?: boolean } }).spec.unschedulable === true;
}

test.each([
  ["was changed", changed("upgrade_k8s.sh")],
  ["is not shipped any more", without("upgrade_k8s.sh")],
])("a run in flight goes on with the script that it began with, although it %s", async (_, next) => {
  const { id, runId, goOn } = await upgradeInFlight();
  becomes(next);
  await goOn();
  await expectInService(id, await bench.ended(runId));
  const log = await logOf(runId);
  expect(log).not.toContain("as the next version has it");
  expect(log).toContain("(as it was when the job began; run retry --new-scripts takes the present one)");
});

test("each text is kept once, however many runs begin with it", async () => {
  const texts = () => bench.db.query("select ref, digest, origin, used_at from script_texts order by ref");
  await upgradeInFlight();
  const before = await texts();
  expect(before).toMatchObject([{ ref: "cordon_node.sh" }, { ref: "uncordon_node.sh" }, { ref: "upgrade_k8s.sh" }]);
  await upgradeInFlight();
  expect(await texts()).toEqual(before);
  // Its use is noted again once a day, and what became a site's own is one from then on.
  await bench.db.execute("update script_texts set used_at = now() - interval '2 days', origin = 'site'");
  await upgradeInFlight();
  const after = await bench.db.query("select from script_texts where used_at > now() - interval '1 hour'");
  expect([after.length, (await texts()).map(({ origin }) => origin)]).toEqual([3, ["shipped", "shipped", "shipped"]]);
});

test("a run whose script nobody has kept fails in the middle; with the new script its machine serves again", async () => {
  const { id, runId, goOn } = await upgradeInFlight();
  await bench.db.execute("delete from script_texts");
  becomes(changed("upgrade_k8s.sh"));
  await goOn();
  const failed = await bench.ended(runId);
  expect(failed.phase).toBe(Run_Phase.FAILED);
  expect(failed.error?.message).toContain("script upgrade_k8s.sh is sha256:");
  expect(await isCordoned(id)).toBe(true);
  const refused = await retry(runId, false).catch((error: unknown) => ConnectError.from(error));
  expect(refused).toMatchObject({
    code: Code.FailedPrecondition,
    rawMessage: expect.stringContaining("is not kept any more"),
  });
  const { run } = await retry(runId, true);
  const ended = await bench.ended(run?.runId ?? "");
  await expectInService(id, ended);
  expect(await logOf(ended.runId)).toContain("as the next version has it");
});

test("a retry goes on with the script of the start, and says so; with new scripts it takes the present one", async () => {
  const { id, runId, goOn } = await upgradeInFlight();
  const broken = { ...shipped, "upgrade_k8s.sh": "#!/bin/sh\nexit 3\n" };
  // As if the job had begun with a script that cannot work.
  becomes(broken);
  const digest = files.find("upgrade_k8s.sh")?.digest ?? "";
  await bench.db.execute(
    "update runs set facts = jsonb_set(facts, '{scripts,upgrade_k8s.sh}', to_jsonb($2::text)) where id = $1",
    [runId, digest],
  );
  await bench.db.execute(
    "insert into script_texts (ref, digest, origin, content) values ('upgrade_k8s.sh', $1, 'shipped', $2)",
    [digest, Buffer.from(broken["upgrade_k8s.sh"])],
  );
  becomes(shipped);
  await goOn();
  expect((await bench.ended(runId)).phase).toBe(Run_Phase.FAILED);
  const { run: again } = await retry(runId, false);
  const second = await bench.ended(again?.runId ?? "");
  expect(second.error?.message).toContain(
    "upgrade_k8s.sh ended with exit code 3 (as it was when the job began; run retry --new-scripts takes the present one)",
  );
  const { run: third } = await retry(second.runId, true);
  await expectInService(id, await bench.ended(third?.runId ?? ""));
});

test("a text that is not what its digest says is not run", async () => {
  const { runId, goOn } = await upgradeInFlight();
  becomes(changed("upgrade_k8s.sh"));
  await bench.db.execute(
    "update script_texts set content = 'echo somebody else wrote this' where ref = 'upgrade_k8s.sh'",
  );
  await goOn();
  const { error } = await bench.ended(runId);
  expect(error?.message).toContain("script upgrade_k8s.sh is sha256:");
  expect(await logOf(runId)).not.toContain("somebody else");
});
