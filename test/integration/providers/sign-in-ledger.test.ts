// @module-tag race
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { signInEndpoint } from "../../../src/capabilities/sign-in-ledger.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { openSecretStore, type SecretStore } from "../../../src/store/access/secrets.ts";
import { liftSignInStop } from "../../../src/store/access/sign-in-ledger.ts";
import { createSignInLedger } from "../../../src/wiring/sign-in-ledger.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type Reach, reach, type SimulatedSite, startSite } from "./simulated-bench.ts";

const RULE = { rejectionsToStop: 2, coolDown: minutes(15) };
const attempt = { endpoint: "192.0.2.1:443", username: "root", password: "canary-4711" };

let database: TestDatabase;
let directory: string;
let secrets: SecretStore;
beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "millwright-ledger-"));
  secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
});
afterAll(async () => {
  await database.drop();
  rmSync(directory, { recursive: true });
});
beforeEach(() => database.db.execute("delete from sign_in_ledger"));

/** As each replica, and each process after a restart, has one of its own. */
const aLedger = () => createSignInLedger(database.db, secrets, silentLog);

describe("the ledger of rejected sign-ins", () => {
  test("is one for all replicas: what one notes, the others find", async () => {
    const [one, two] = [aLedger(), aLedger()];
    expect(await two.rejections(attempt)).toBeUndefined();
    const first = await one.noteRejected(attempt, RULE);
    expect(first).toMatchObject({ count: 1, rest: 0 });
    expect(await two.rejections(attempt)).toEqual(first);
    const second = await two.noteRejected(attempt, RULE);
    expect(second).toMatchObject({ count: 2, since: first.since });
    expect(second.rest).toBe(RULE.coolDown);
    const found = await one.rejections(attempt);
    expect(found).toMatchObject({ count: 2, since: first.since });
    expect(found?.rest).toBeGreaterThan(RULE.coolDown - minutes(1));
  });

  test("has one key, also when all replicas need it first at once", async () => {
    await database.db.execute("delete from secrets");
    const ledgers = [1, 2, 3, 4].map(aLedger);
    await Promise.all(ledgers.map((ledger) => ledger.noteRejected(attempt, RULE)));
    expect(await aLedger().rejections(attempt)).toMatchObject({ count: 4 });
  });

  test("tells credentials, accounts and BMCs apart, asked for all at once", async () => {
    const ledger = aLedger();
    await ledger.noteRejected(attempt, RULE);
    const others = [
      { ...attempt, password: "other" },
      { ...attempt, username: "other" },
      { ...attempt, endpoint: "192.0.2.2:443" },
    ];
    const found = await Promise.all([...others, attempt, attempt].map((each) => ledger.rejections(each)));
    expect(found.map((each) => each?.count)).toEqual([undefined, undefined, undefined, 1, 1]);
  });

  test("forgets credentials that were accepted, and no others", async () => {
    const ledger = aLedger();
    const old = { ...attempt, password: "old" };
    await ledger.noteRejected(attempt, RULE);
    await ledger.noteRejected(old, RULE);
    await ledger.noteAccepted(attempt);
    expect(await ledger.rejections(attempt)).toBeUndefined();
    expect(await ledger.rejections(old)).toMatchObject({ count: 1 });
  });

  test("allows one try after the cool-down, and stops again if that is rejected too", async () => {
    const ledger = aLedger();
    for (let count = 0; count < 2; count += 1) await ledger.noteRejected(attempt, RULE);
    await database.db.execute("update sign_in_ledger set rejected_until = now() - interval '1 second'");
    expect(await ledger.rejections(attempt)).toMatchObject({ count: 2, rest: 0 });
    expect(await ledger.noteRejected(attempt, RULE)).toMatchObject({ count: 3, rest: RULE.coolDown });
  });

  test("has credentials that somebody has just given tried once more, at their BMC alone", async () => {
    const ledger = aLedger();
    const other = { ...attempt, endpoint: "192.0.2.2:443" };
    for (const each of [attempt, attempt, other, other]) await ledger.noteRejected(each, RULE);
    await database.db.transaction((tx) => liftSignInStop(tx, [attempt.endpoint]));
    expect(await ledger.rejections(attempt)).toMatchObject({ count: 2, rest: 0 });
    expect((await ledger.rejections(other))?.rest).toBeGreaterThan(0);
    expect(await ledger.noteRejected(attempt, RULE)).toMatchObject({ count: 3, rest: RULE.coolDown });
  });

  test("does not keep for ever what a BMC rejected long ago", async () => {
    const ledger = aLedger();
    await ledger.noteRejected({ ...attempt, password: "old" }, RULE);
    await database.db.execute("update sign_in_ledger set rejected_until = now() - interval '31 days'");
    await ledger.noteRejected(attempt, RULE);
    expect(await database.db.query("select 1 from sign_in_ledger")).toHaveLength(1);
  });

  test("holds nothing from which the password could be told without the key", async () => {
    await aLedger().noteRejected(attempt, RULE);
    const [row] = await database.db.query<{ text: string }>("select l::text as text from sign_in_ledger l");
    expect(row?.text).toContain("192.0.2.1:443");
    expect(row?.text).not.toMatch(/canary|root/);
    const elsewhere = await createTestDatabase();
    try {
      await createSignInLedger(elsewhere.db, secrets, silentLog).noteRejected(attempt, RULE);
      const digests = await Promise.all(
        [database.db, elsewhere.db].map((db) => db.query<{ digest: Buffer }>("select digest from sign_in_ledger")),
      );
      expect(digests[0]).not.toEqual(digests[1]);
    } finally {
      await elsewhere.drop();
    }
  });
});

describe("replicas that share the ledger", () => {
  let site: SimulatedSite;
  const open: Reach[] = [];
  beforeAll(async () => {
    site = await startSite(20);
  });
  afterAll(async () => {
    await Promise.all(open.map((one) => one.close()));
    await site.stop();
  });

  test("together try wrong credentials at a BMC twice, restarts included, and right ones at once", async () => {
    const [device] = await site.devices("liteon");
    if (device === undefined) throw new Error("the site is empty");
    const right = await site.target(device);
    const wrong: BmcTarget = { ...right, password: "wrong" };
    let signIns = 0;
    const aReplica = () => {
      const onCall = ({ operation, left }: { operation: string; left: boolean }) => {
        if (operation === "redfish.sign_in" && left) signIns += 1;
      };
      const one = reach({ gateway: { ledger: aLedger(), observer: { onCall } } });
      open.push(one);
      return one.provider.can.inventory;
    };
    const ask = (inspect: ReturnType<typeof aReplica>, target: BmcTarget) =>
      inspect.identify(target, aCall()).catch((error: unknown) => error);
    const failures: unknown[] = [];
    for (let replica = 0; replica < 5; replica += 1) {
      const inspect = aReplica();
      for (let count = 0; count < 3; count += 1) failures.push(await ask(inspect, wrong));
    }
    expect(signIns).toBe(2);
    expect(failures.at(-1)).toMatchObject({ family: "keeps_out" });
    expect((failures.at(-1) as Error).message).toContain("so that the account is not locked");
    expect(await ask(aReplica(), right)).toMatchObject({ serial: device.serial });
  });

  test("try credentials that they had stopped once more when somebody gives them again, and accept them if the BMC does", async () => {
    const [, device] = await site.devices("liteon");
    if (device === undefined) throw new Error("the site is too small");
    const target = await site.target(device);
    const [one, two] = [reach({ gateway: { ledger: aLedger() } }), reach({ gateway: { ledger: aLedger() } })];
    open.push(one, two);
    const ask = ({ provider }: Reach) =>
      provider.can.inventory.identify(target, aCall()).catch((error: unknown) => error);
    await site.addFault({ device: device.id, fault: { type: "wrong_credentials" }, times: 3 });
    for (const replica of [one, two, one, two]) expect(await ask(replica)).toMatchObject({ family: "keeps_out" });
    const lift = () => database.db.transaction((tx) => liftSignInStop(tx, [signInEndpoint(target)]));
    await lift();
    expect(await ask(two)).toMatchObject({ family: "keeps_out" }); // the third and last rejection: stopped again
    expect(await ask(one)).toMatchObject({ family: "keeps_out" });
    await lift();
    expect(await ask(one)).toMatchObject({ serial: device.serial });
  });
});
