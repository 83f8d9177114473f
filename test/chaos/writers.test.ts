import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { countEarlierSecrets } from "../../src/store/access/secret-keys.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { verifyAfter } from "../../src/store/lifecycle/seals/verify-seals.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { dumpTables } from "../integration/api/forge-under-test.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { sealJournal, testSealKey } from "../support/journal/sealed-journal.ts";
import { bareStores } from "../support/processes/bare-stores.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { startProgram } from "../support/processes/programs.ts";
import { WRITES, type Write } from "../support/processes/writer-process.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/**
 * Kill -9 in the middle of what callers have written: it is there as a whole or not at all, and can be asked for again.
 *
 * `before` is what the write needs to find; `tables` are those that it changes.
 */
interface Kill {
  readonly at: string;
  readonly write: Write;
  readonly before: readonly Write[];
  readonly tables: readonly string[];
}

// biome-ignore format: a table is read by its columns
const KILLS: readonly Kill[] = [
  { at: "create:inserted",        write: "create shelf two",            before: [],                                          tables: ["idempotency_keys", "journal", "power_shelves", "secrets", "work"] },
  { at: "idempotency:remembered", write: "create shelf two",            before: ["create shelf one"],                        tables: ["idempotency_keys", "journal", "power_shelves", "secrets", "work"] },
  { at: "secrets:put",            write: "create shelf two",            before: ["create shelf one"],                        tables: ["idempotency_keys", "journal", "power_shelves", "secrets", "work"] },
  { at: "changes:written",        write: "mark shelf one for deletion", before: ["create shelf one"],                        tables: ["journal", "power_shelves"] },
  { at: "journal:appended",       write: "mark shelf one for deletion", before: ["create shelf one"],                        tables: ["journal", "power_shelves"] },
  { at: "withdrawals:written",    write: "mark shelf one for deletion", before: ["create shelf one", "ask for maintenance of shelf one"], tables: ["journal", "power_shelves"] },
  { at: "bmc-credentials:removed", write: "remove shelf one",           before: ["create shelf one"],                        tables: ["journal", "power_shelves", "secrets", "work"] },
  { at: "bmc-credentials:pin-forgotten", write: "forget its certificate", before: ["create shelf one", "pin its certificate"], tables: ["journal", "power_shelves", "secrets"] },
  { at: "machine-credentials:moved", write: "move its SSH endpoint",    before: ["register a machine", "give it an SSH endpoint", "give it a key"], tables: ["journal", "machines", "secrets"] },
  { at: "credentials:bound",      write: "bind the credentials",        before: ["create shelf one", "unbind its credentials"], tables: ["secrets"] },
  { at: "health-reports:put",     write: "report on shelf one",         before: ["create shelf one"],                        tables: ["health_reports", "journal", "power_shelves"] },
  { at: "health-reports:removed", write: "take the report back",        before: ["create shelf one", "report on shelf one"], tables: ["health_reports", "journal", "power_shelves"] },
  { at: "changes:written",        write: "report on the machine",       before: ["register a machine"],                      tables: ["health_reports", "journal", "machines"] },
  { at: "health-reports:put",     write: "report on the machine",       before: ["register a machine"],                      tables: ["health_reports", "journal", "machines"] },
  { at: "secrets:removed",        write: "drop the secret",             before: ["keep a secret"],                           tables: ["secrets"] },
  { at: "secret-keys:current",    write: "change the secret key",       before: ["tell of two secret keys"],                 tables: ["journal", "secret_keys"] },
  { at: "sign-in-ledger:lifted",  write: "give shelf one its credentials again", before: ["create shelf one", "note a rejected sign-in", "note a rejected sign-in"], tables: ["journal", "power_shelves", "secrets", "sign_in_ledger"] },
  { at: "restore:identity-written", write: "write down which database it is", before: [],                               tables: ["database_identity"] },
  { at: "restore:declared",       write: "find the database restored",  before: ["write down which database it is", "register a machine", "give it credentials", "start a run"], tables: ["database_identity", "journal", "journal_epoch", "restore_declarations", "restore_reviews", "work"] },
  { at: "restore:parked-all",     write: "find the database restored",  before: ["write down which database it is", "register a machine", "give it credentials", "start a run"], tables: ["database_identity", "journal", "journal_epoch", "restore_declarations", "restore_reviews", "work"] },
  { at: "restore:begun",          write: "find the database restored",  before: ["write down which database it is", "register a machine", "give it credentials", "start a run"], tables: ["database_identity", "journal", "journal_epoch", "restore_declarations", "restore_reviews", "work"] },
  { at: "restore:parked",         write: "sort what is parked",         before: ["write down which database it is", "register a machine", "give it credentials", "start a run", "find the database restored"], tables: ["journal", "parked_work", "runs", "work"] },
  { at: "restore:settled",        write: "abandon the run",             before: ["write down which database it is", "register a machine", "give it credentials", "start a run", "find the database restored", "sort what is parked", "open the review"], tables: ["journal", "parked_work", "runs", "work"] },
  { at: "restore:witnesses-forgotten", write: "forget what is old",     before: ["write down which database it is", "leave an old witness behind"], tables: ["database_identity", "database_witnesses"] },
  { at: "tokens:created",         write: "create a token",              before: [],                                          tables: ["journal", "tokens"] },
  { at: "tokens:name-given-up",   write: "create a token",              before: [],                                          tables: ["journal", "tokens"] },
  { at: "refused-calls:forgotten", write: "forget what is old",         before: ["count refused calls of long ago"],         tables: ["refused_calls"] },
  { at: "tokens:revoked",         write: "revoke all tokens",           before: ["create a token"],                          tables: ["journal", "tokens"] },
  { at: "sessions:created",       write: "open a session",              before: [],                                          tables: ["console_sessions", "journal"] },
  { at: "sessions:forgotten",     write: "open a session",              before: ["open a session of long ago"],              tables: ["console_sessions", "journal"] },
  { at: "sessions:displaced",     write: "open a session",              before: ["open a session"],                          tables: ["console_sessions", "journal"] },
  { at: "sessions:forgotten-of-credential", write: "open a session",    before: ["open a session"],                          tables: ["console_sessions", "journal"] },
  { at: "sessions:ended",         write: "end all sessions",            before: ["open a session"],                          tables: ["console_sessions", "journal"] },
  { at: "saved-views:written",    write: "keep a view",                 before: [],                                          tables: ["journal", "saved_views"] },
  { at: "saved-views:deleted",    write: "delete the view",             before: ["keep a view"],                             tables: ["journal", "saved_views"] },
  { at: "machine-identities:written", write: "register a machine",      before: [],                                          tables: ["condition_looks", "journal", "machine_identities", "machines", "work"] },
  { at: "machine-identities:written", write: "replace its MAC addresses", before: ["register a machine"],                    tables: ["journal", "machine_identities", "machines"] },
  { at: "strange-boots:written",  write: "boot other hardware with its address", before: ["register a machine"],             tables: ["journal", "machines", "strange_boots"] },
  { at: "create:inserted",       write: "retry the run",               before: ["register a machine", "give it credentials", "start a run", "fail the run"], tables: ["journal", "machines", "runs", "work"] },
  { at: "changes:written",       write: "retry the run",               before: ["register a machine", "give it credentials", "start a run", "fail the run"], tables: ["journal", "machines", "runs", "work"] },
  { at: "plans:written",          write: "create a plan",               before: [],                                          tables: ["journal", "plans"] },
  { at: "script-texts:kept",      write: "keep the scripts of a run",   before: [],                                          tables: ["script_texts"] },
  { at: "clusters:written",       write: "create a cluster",            before: [],                                          tables: ["clusters", "journal", "secrets"] },
  { at: "clusters:replaced",      write: "replace its kubeconfig",      before: ["create a cluster"],                        tables: ["journal", "secrets"] },
  { at: "images:written",         write: "create an image",             before: [],                                          tables: ["images", "journal"] },
  { at: "cloud-init:written",     write: "create a cloud-init document", before: [],                                         tables: ["cloud_init_documents", "journal"] },
  { at: "install-workflows:written", write: "create a workflow",        before: [],                                          tables: ["install_workflows", "journal"] },
  { at: "install-workflows:retired", write: "delete the workflow",      before: ["create a workflow"],                       tables: ["install_workflows", "journal"] },
  { at: "device-groups:written",  write: "create a group",              before: [],                                          tables: ["device_groups", "journal"] },
  { at: "rack-profiles:written",  write: "put a rack profile",          before: [],                                          tables: ["journal", "rack_profiles"] },
  { at: "fleet-sites:written",     write: "add a fleet site",           before: [],                                          tables: ["fleet_sites", "journal", "secrets"] },
  { at: "fleet-sites:changed",     write: "change the fleet site",      before: ["add a fleet site"],                        tables: ["fleet_sites", "journal", "secrets"] },
  { at: "fleet-sites:removed",     write: "remove the fleet site",      before: ["add a fleet site"],                        tables: ["fleet_sites", "journal", "secrets"] },
  { at: "fleet-observations:written", write: "record what MAAS shows",  before: ["add a fleet site"],                        tables: ["fleet_observations"] },
  { at: "fleet-profiles:written",  write: "set a fleet profile",        before: ["add a fleet site"],                        tables: ["fleet_profiles", "journal"] },
  { at: "fleet-profiles:removed",  write: "remove the fleet profile",   before: ["add a fleet site", "set a fleet profile"], tables: ["fleet_profiles", "journal"] },
  { at: "fleet-roce:written",      write: "assign RoCE addresses",      before: ["add a fleet site"],                        tables: ["fleet_roce_links", "journal"] },
  { at: "fleet-roce:removed",      write: "remove the RoCE assignment", before: ["add a fleet site", "assign RoCE addresses"], tables: ["fleet_roce_links", "journal"] },
  { at: "tokens:bound",            write: "enrol its agent",            before: ["add a fleet site", "put a fleet node on record"], tables: ["fleet_agents", "fleet_nodes", "journal", "tokens"] },
  { at: "fleet-agents:replaced",   write: "enrol its agent",            before: ["add a fleet site", "put a fleet node on record"], tables: ["fleet_agents", "fleet_nodes", "journal", "tokens"] },
  { at: "fleet-agents:dismissed",  write: "dismiss its agent",          before: ["add a fleet site", "put a fleet node on record", "enrol its agent"], tables: ["fleet_agents", "tokens"] },
  { at: "fleet-tasks:forgotten",   write: "forget what is old",         before: ["leave an old task behind"],                tables: ["fleet_tasks"] },
  { at: "rack-profiles:removed",  write: "delete the rack profile",     before: ["put a rack profile"],                      tables: ["journal", "rack_profiles"] },
  { at: "device-groups:removed",  write: "delete the group",            before: ["create a group"],                          tables: ["device_groups", "journal"] },
  { at: "create:inserted",        write: "order an install",            before: ["register a machine", "create a workflow"], tables: ["installs", "journal", "work"] },
  { at: "transitions:journaled",  write: "order an install",            before: ["register a machine", "create a workflow"], tables: ["installs", "journal", "work"] },
  { at: "changes:written",        write: "order an install",            before: ["register a machine", "create a workflow"], tables: ["installs", "journal", "work"] },
  { at: "install-orders:placed",  write: "order an install",            before: ["register a machine", "create a workflow"], tables: ["installs", "journal", "work"] },
  { at: "transitions:journaled",  write: "order it again",              before: ["register a machine", "create a workflow", "order an install"], tables: ["installs", "journal"] },
  { at: "create:inserted",        write: "let the spare take its place", before: ["create a workflow", "bring a node into use", "register a spare"], tables: ["claims", "installs", "journal"] },
  { at: "changes:written",        write: "let the spare take its place", before: ["create a workflow", "bring a node into use", "register a spare"], tables: ["claims", "installs", "journal"] },
  { at: "transitions:journaled",  write: "let the spare take its place", before: ["create a workflow", "bring a node into use", "register a spare"], tables: ["claims", "installs", "journal"] },
  { at: "claims:wished",          write: "let the spare take its place", before: ["create a workflow", "bring a node into use", "register a spare"], tables: ["claims", "installs", "journal"] },
  { at: "claims:wished",          write: "let a rack wait for two machines", before: ["let a run hold the machine"],         tables: ["claims"] },
  { at: "claims:released",        write: "let the rack want another one", before: ["let a run hold the machine", "let a rack wait for two machines"], tables: ["claims"] },
  { at: "claims:wished",          write: "let the rack want another one", before: ["let a run hold the machine", "let a rack wait for two machines"], tables: ["claims"] },
  { at: "claims:released",        write: "let the run end",             before: ["let a run hold the machine", "let a rack wait for two machines"], tables: ["claims", "work"] },
  { at: "claims:granted",         write: "let the run end",             before: ["let a run hold the machine", "let a second run wait for it"], tables: ["claims", "work"] },
  { at: "claims:granted",         write: "let the rack take both",      before: ["let a run hold the machine", "let a rack wait for two machines", "let the run end"], tables: ["claims"] },
  { at: "changes:written",        write: "call that off",               before: ["create a workflow", "bring a node into use", "register a spare", "let the spare take its place"], tables: ["claims", "installs", "journal"] },
  { at: "claims:released",        write: "call that off",               before: ["create a workflow", "bring a node into use", "register a spare", "let the spare take its place"], tables: ["claims", "installs", "journal"] },
];

let bench: ProcessBench;
let database: TestDatabase;
beforeAll(() => {
  bench = openProcessBench();
});
afterAll(() => bench.close());

const keyFile = () => join(bench.directory, "secret-key");
const killed = { code: null, signal: "SIGKILL" };

/** Only who is to die needs a process of its own. */
const startVictim = (write: Write, failPoint: string) =>
  startProgram(bench, {
    program: "writer-process.ts",
    args: [database.url, keyFile(), write],
    env: { MILLWRIGHT_FAILPOINT: failPoint },
  });

/** By another replica: this one. */
async function carryOut(...writes: readonly Write[]): Promise<void> {
  const secrets = openSecretStore({ keyFile: keyFile() });
  for (const write of writes) await WRITES[write]({ db: database.db, secrets, stores: allStores, maxFindByIds: 100 });
}

async function prepare(writes: readonly Write[]): Promise<TestDatabase> {
  database = await createTestDatabase();
  onTestFinished(database.drop);
  await carryOut(...writes);
  return database;
}

test("victims have the stores that the server has", () => {
  const kinds = [...bareStores].map(({ lifecycle }) => lifecycle.kind);
  expect(kinds.toSorted()).toEqual([...allStores.keys()].toSorted());
});

describe("a server killed at", () => {
  test.each(KILLS)("$at ($write) has written nothing, and the same call then writes everything", async (kill) => {
    const { db } = await prepare(kill.before);
    const found = await dumpTables(db);
    const victim = await startVictim(kill.write, kill.at);
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    expect(await dumpTables(db)).toEqual(found);

    await carryOut(kill.write);
    const written = await dumpTables(db);
    expect(Object.keys(written).filter((table) => written[table]?.join() !== found[table]?.join())).toEqual(
      expect.arrayContaining([...kill.tables]),
    );
  });

  test("sign-in-ledger:noted has counted the rejection: the BMC did, too", async () => {
    const { db } = await prepare([]);
    const victim = await startVictim("note a rejected sign-in", "sign-in-ledger:noted");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    expect(await db.query("select rejections from sign_in_ledger")).toEqual([{ rejections: 1 }]);
    await carryOut("note a rejected sign-in");
    expect(await db.query("select rejections from sign_in_ledger")).toEqual([{ rejections: 2 }]);
  });

  test("secrets:encrypted-again has left all of them with the earlier key", async () => {
    const { db } = await prepare(["keep a secret", "say which secret keys there are"]);
    appendFileSync(keyFile(), `${randomBytes(32).toString("base64")}\n`);
    await carryOut("say which secret keys there are", "change to the newest secret key");
    const found = await dumpTables(db);
    const victim = await startVictim("encrypt its secrets again", "secrets:encrypted-again");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    expect(await dumpTables(db)).toEqual(found);
    await carryOut("encrypt its secrets again");
    expect(await countEarlierSecrets(db)).toBe(0);
  });

  test("restore:released has released nothing; sorting again parks the same, and releases the rest", async () => {
    const { db } = await prepare([
      "write down which database it is",
      "create shelf one",
      "register a machine",
      "give it credentials",
      "start a run",
      "find the database restored",
    ]);
    const parked = () => db.query("select kind, parked from work where kind <> 'restore_review' order by kind, id");
    const victim = await startVictim("sort what is parked", "restore:released");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    const all = await parked();
    expect(all.every((row) => row.parked === true)).toBe(true);
    await carryOut("sort what is parked");
    expect(await db.query("select kind from parked_work where verdict is null order by kind")).toEqual([
      { kind: "power_shelf" },
      { kind: "run" },
    ]);
    expect(await parked()).toContainEqual({ kind: "machine", parked: false });
  });

  test("restore:beat has written a beat whose answer nobody heard, which is no restore", async () => {
    const { db } = await prepare(["write down which database it is", "have the database confirm itself"]);
    const victim = await startVictim("have the database confirm itself", "restore:beat");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    await carryOut("have the database confirm itself");
    expect(await db.query("select id from restore_reviews")).toEqual([]);
  });

  test("replicas:noted has told of the replica: others see in a while that it is lost", async () => {
    const { db } = await prepare([]);
    const victim = await startVictim("tell of a replica", "replicas:noted");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    expect(await db.query("select id, stopping from replicas")).toEqual([{ id: "r-1", stopping: false }]);
  });

  test("refused-calls:counted has counted them: nobody counts the same calls again", async () => {
    const { db } = await prepare([]);
    const victim = await startVictim("count refused calls of long ago", "refused-calls:counted");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    await carryOut("count refused calls of long ago");
    expect(await db.query("select calls from refused_calls")).toEqual([{ calls: 6 }]);
  });

  test.each([
    ["fleet-site-watches:noted", "claim the fleet site", { epoch: 0, is_held: false }],
    ["fleet-site-watches:claimed", "claim the fleet site", { epoch: 1, is_held: true }],
    ["fleet-site-watches:released", "release the fleet site", { epoch: 1, is_held: false }],
  ] as const)(
    "%s leaves the site to the others, at the latest when its lease ends",
    async (failPoint, write, found) => {
      const { db } = await prepare(["add a fleet site", "bind a fleet node"]);
      if (write === "release the fleet site") await carryOut("claim the fleet site", "claim the fleet site");
      const victim = await startVictim(write, failPoint);
      expect(await victim.exited, victim.transcript()).toEqual(killed);
      const watches = () => db.query("select epoch, lease_owner is not null as is_held from fleet_site_watches");
      expect(await watches()).toEqual([found]);
      await db.execute("update fleet_site_watches set due_at = now()"); // as if the time had passed
      await carryOut("claim the fleet site");
      expect(await watches()).toEqual([{ epoch: found.epoch + 1, is_held: true }]);
    },
  );

  test("health-reports:forgotten has removed reports that ended, and no other", async () => {
    const { db } = await prepare([
      "create shelf one",
      "register a machine",
      "report on shelf one",
      "report on the machine",
    ]);
    await db.execute("update health_reports set expires_at = now() where kind = 'machine'");
    const victim = await startVictim("end expired reports", "health-reports:forgotten");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    expect(await db.query("select kind from health_reports")).toEqual([{ kind: "power_shelf" }]);
    await carryOut("end expired reports");
  });

  test("run-documents:forgotten has removed the documents of a job that is long over, and no other", async () => {
    const { db } = await prepare([
      "register a machine",
      "give it credentials",
      "start a run",
      "fail the run",
      "keep its document",
    ]);
    await db.execute("update runs set state_since = now() - interval '2 days'");
    const documents = () => db.query("select name from secrets where name like 'job-document/%'");
    expect(await documents()).toHaveLength(1);
    const victim = await startVictim("forget what is old", "run-documents:forgotten");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    expect(await documents()).toEqual([]);
    await carryOut("forget what is old");
  });

  test("script-texts:forgotten has removed the text that no run has, and no other", async () => {
    const { db } = await prepare([
      "register a machine",
      "give it credentials",
      "start a run",
      "keep the scripts of a run",
    ]);
    const texts = () => db.query<{ ref: string; digest: string }>("select ref, digest from script_texts order by ref");
    const [first, second] = await texts();
    await db.execute("update script_texts set used_at = now() - interval '3 days'");
    await db.execute("update runs set facts = jsonb_set(facts, '{scripts}', jsonb_build_object($1::text, $2::text))", [
      first?.ref,
      first?.digest,
    ]);
    const victim = await startVictim("forget what is old", "script-texts:forgotten");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    expect(second).toBeDefined();
    expect(await texts()).toEqual([first]); // the run that goes on has it
    await db.execute("update runs set state = 'FAILED', state_since = now() - interval '3 days'");
    await carryOut("forget what is old");
    expect(await texts()).toEqual([]);
  });

  test("journal:forgotten has removed whole entries, and both watchers and readers are told of them", async () => {
    const { db } = await prepare(["create shelf one", "give shelf one its credentials again", "report on shelf one"]);
    await db.execute("update journal set at = now() - interval '2 days'");
    await sealJournal(db);
    const list = () =>
      db.query<{ cursor: string }>(
        "select epoch || '.' || xid::text || '.' || seq as cursor from journal order by epoch, xid, seq",
      );
    const [first, second, third] = await list();
    const victim = await startVictim("forget what is old", "journal:forgotten");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    expect(await list()).toEqual([first, third]); // the last change of state, and the last entry
    expect(await db.query("select forgotten_to as cursor from journal_epoch")).toEqual([second]);
    expect(await db.query("select id, entries from journal_removals")).toEqual([{ id: "one", entries: 1 }]);
    await carryOut("forget what is old");
    expect(await verifyAfter(db, await testSealKey(), undefined)).toMatchObject({ removed: 1, problem: undefined });
  });

  test("journal-seals:removals-signed has removed nothing, and nothing is missed", async () => {
    const { db } = await prepare(["create shelf one", "give shelf one its credentials again", "report on shelf one"]);
    await db.execute("update journal set at = now() - interval '2 days'");
    await sealJournal(db);
    const victim = await startVictim("forget what is old", "journal-seals:removals-signed");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    expect(await verifyAfter(db, await testSealKey(), undefined)).toMatchObject({ removed: 0, problem: undefined });
    // The server may still hold the lock of who died: then there is nothing to do for others, and they come again.
    await eventually(
      async () => {
        await carryOut("forget what is old");
        const verified = await verifyAfter(db, await testSealKey(), undefined);
        return verified.removed === 1 && verified.problem === undefined;
      },
      { what: "the entry is removed, and that is signed" },
    );
  });

  test("journal-seals:sealed has sealed, and the next seal goes on from there", async () => {
    const { db } = await prepare(["create shelf one"]);
    const victim = await startVictim("seal the journal", "journal-seals:sealed");
    expect(await victim.exited, victim.transcript()).toEqual(killed);
    expect(await db.query("select number from journal_seals")).toEqual([{ number: 1 }]);
    await carryOut("report on shelf one");
    await sealJournal(db);
    expect(await verifyAfter(db, await testSealKey(), undefined)).toMatchObject({ seals: 2, problem: undefined });
  });
});
