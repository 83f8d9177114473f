import { writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { missingPostgres } from "../support/counterparts/debian-postgres.ts";
import { needing } from "../support/counterparts/needing.ts";
import { eventually } from "../support/eventually.ts";
import { missingBalancer } from "./balancer.ts";
import {
  DATABASE,
  type Effects,
  missingFaketime,
  OLDER,
  RACKS,
  REPLICAS,
  type RunSeen,
  Site,
  SKEWED,
  since,
  tally,
} from "./site.ts";

/**
 * An afternoon of a platform engineer: a site is set up by the production guide, upgraded with its runs in flight, and meets one fault
 * after the other. The judge is what the machines counted: each run did to its machine what one run does that nobody disturbs.
 *
 * `TRIAL_OLDER=/checkout/of/an/earlier/version` begins with that version. `TRIAL_PAGE=file` writes what was seen.
 */
const missing = [missingPostgres(), missingBalancer(), missingFaketime()].filter(Boolean).join(" ");
const FEW = 18;

let site: Site;
/** What one run does to a machine, by its type. */
const ONCE = new Map<string, Effects>();
const told: string[] = [];

beforeAll(async () => {
  if (missing === "") site = await Site.open();
});
afterAll(async () => {
  await site?.close();
});

/** Notes for the page what came of a part. */
function note(part: string, runs: readonly RunSeen[], began: number, more = ""): void {
  const seconds = ((performance.now() - began) / 1_000).toFixed(0);
  const counts = tally(runs);
  const outcome = Object.entries(counts)
    .map(([phase, count]) => `${count} ${phase}`)
    .join(", ");
  told.push(`| ${part} | ${outcome} | ${seconds} s | ${more} |`);
  process.stdout.write(`${told.at(-1)}\n`);
}

/** Runs on machines of their own, with something happening to the site as soon as most of them are at work. */
async function disturbed(
  part: string,
  { type = "REPAVE", count = FEW, most = Math.ceil(count / 2) }: { type?: string; count?: number; most?: number },
  happens: (runs: readonly RunSeen[]) => Promise<unknown>,
): Promise<void> {
  const machines = site.take(count);
  const before = await site.effects(machines);
  const began = performance.now();
  const runs = await site.start(machines, type);
  await site.underWay(runs, most);
  site.refusals.clear();
  const looking = new AbortController();
  const looks = site.look(looking.signal);
  await happens(runs).finally(() => looking.abort());
  await looks;
  const ended = await site.ended(runs);
  for (const replica of site.replicas) expect(replica?.process.hasExited(), replica?.process.transcript()).toBe(false);
  expect(
    [...site.refusals].filter((said) => said.includes("internal")),
    "who is to come again is told why",
  ).toEqual([]);
  note(
    part,
    ended,
    began,
    [...site.refusals].map((text) => `\`${text.replaceAll("|", "/").replaceAll("\n", " ")}\``).join(" "),
  );
  expect(tally(ended)).toEqual({ SUCCEEDED: count });
  const done = since(before, await site.effects(machines));
  for (const [at, effects] of done.entries()) expect(effects, `${part}: ${machines[at]}`).toEqual(ONCE.get(type));
  expect(await site.db.query("select * from claims")).toEqual([]);
}

describe.skipIf(missing !== "")(needing("an afternoon in production", missing), () => {
  test("the guide: a schema, three replicas behind a load balancer, a token, a fleet", async () => {
    const url = site.databaseUrl;
    if (OLDER === undefined) {
      const plan = await site.cli("migrate", "plan", "--database-url", url);
      expect(plan.code, plan.output).toBe(0);
      const applied = await site.cli("migrate", "apply", "--database-url", url);
      expect(applied.code, applied.output).toBe(0);
    }
    await site.startAll(OLDER);
    const made = await site.cli("token", "create", "alice", "--role", "admin", "-o", "json");
    expect(made.code, made.output).toBe(0);
    site.token = (JSON.parse(made.output) as { token: string }).token;
    await site.fill(OLDER);
    expect(site.machines).toHaveLength(RACKS * 18);
    const machines = site.take(1);
    for (const type of ["REPAVE", "REBOOT"]) {
      const before = await site.effects(machines);
      expect(tally(await site.ended(await site.start(machines, type)))).toEqual({ SUCCEEDED: 1 });
      ONCE.set(type, since(before, await site.effects(machines))[0] ?? {});
    }
    expect(ONCE.get("REPAVE")).toMatchObject({ installs: 1, joins: 1 });
  });

  test("a version is rolled out with 108 runs in flight", async () => {
    await disturbed(
      `${RACKS * 18} runs, ${OLDER === undefined ? "each replica is replaced" : "all stop, migrate, start"}`,
      { count: RACKS * 18, most: 40 },
      async () => {
        if (OLDER === undefined) return rollOut();
        for (let at = 0; at < REPLICAS; at += 1) await site.stopReplica(at);
        const applied = await site.cli("migrate", "apply", "--database-url", site.databaseUrl);
        expect(applied.code, applied.output).toBe(0);
        await site.startAll();
      },
    );
  });

  test("it is rolled out again, and back, with runs in flight", async () => {
    await disturbed(`${FEW} runs, each replica is replaced twice`, {}, async () => {
      await rollOut();
      await rollOut();
    });
  });

  test("a replica dies", async () => {
    await disturbed(`${FEW} runs, a replica is killed`, {}, async () => {
      await site.killReplica(0);
      await site.startReplica(0);
    });
  });

  test("all replicas die", async () => {
    await disturbed(`${FEW} runs, all replicas are killed`, {}, async () => {
      for (let at = 0; at < REPLICAS; at += 1) await site.killReplica(at);
      await site.startAll();
    });
  });

  test("the database crashes", async () => {
    await disturbed(`${FEW} runs, the database crashes and comes back`, {}, async () => {
      await site.postgres.stop("immediate");
      await eventually(async () => (await site.replicas[0]?.get("/readyz"))?.status === 503, {
        what: "the replica is not ready",
      });
      await site.postgres.start();
    });
  });

  test("connections to the database are cut again and again", async () => {
    await disturbed(`${FEW} runs, all database connections are cut 20 times`, {}, async () => {
      for (let cut = 0; cut < 20; cut += 1) {
        await site.postgres.sql(
          "postgres",
          `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${DATABASE}'`,
        );
        await pause(250);
      }
    });
  });

  test("the database takes no writes for a while", async () => {
    await disturbed(`${FEW} runs, the database is read-only until all replicas say so`, {}, async () => {
      const set = (value: "on" | "off") => `alter system set default_transaction_read_only = ${value}`;
      await site.postgres.sql("postgres", set("on"));
      await site.postgres.sql("postgres", "select pg_reload_conf()");
      const states = () =>
        Promise.all(site.replicas.map(async (replica) => (await replica?.get("/readyz"))?.text ?? ""));
      await eventually(async () => (await states()).every((text) => text.includes("read-only")), {
        what: "all replicas name the cause",
        seen: async () => (await states()).join("\n"),
      });
      await site.postgres
        .sql("postgres", `set default_transaction_read_only = off; ${set("off")}`)
        .catch(() => undefined);
      await site.postgres.sql("postgres", set("off")).catch(() => undefined);
      await site.postgres.sql("postgres", "select pg_reload_conf()");
    });
  });

  test("a replica is stopped for longer than its leases, and goes on", async () => {
    await disturbed(`${FEW} runs, a replica stands still for 40 s`, {}, async () => {
      site.replicas[1]?.process.signal("SIGSTOP");
      await pause(40_000);
      site.replicas[1]?.process.signal("SIGCONT");
    });
  });

  test("the clock of a replica is wrong", async () => {
    await site.stopReplica(2);
    await site.startReplica(2, { env: SKEWED });
    await disturbed(`${FEW} runs, the clock of a replica is five minutes ahead`, {}, async () => {
      await site.stopReplica(2);
      await site.startReplica(2);
    });
  });

  test("the load balancer goes down", async () => {
    await disturbed(`${FEW} runs, the load balancer dies and comes back`, {}, async () => {
      await site.balancer.kill();
      await site.balancer.start();
    });
  });

  test("a backup from the middle of the runs is restored after they have ended", async () => {
    const machines = site.take(FEW);
    const before = await site.effects(machines);
    const began = performance.now();
    const runs = await site.start(machines, "REPAVE");
    await site.underWay(runs, FEW);
    const backup = await site.postgres.dump(DATABASE);
    const ended = await site.ended(runs);
    expect(tally(ended)).toEqual({ SUCCEEDED: FEW });
    for (const effects of since(before, await site.effects(machines))) expect(effects).toEqual(ONCE.get("REPAVE"));
    for (let at = 0; at < REPLICAS; at += 1) await site.stopReplica(at);
    const everywhere = await site.effects(site.machines);
    await site.postgres.drop(DATABASE);
    await site.postgres.create(DATABASE);
    await site.postgres.restore(backup, DATABASE);
    await site.startAll();
    const review = async () => (await site.cli("restore", "review")).output;
    await eventually(async () => (await review()).includes("open"), {
      what: "the review is open",
      within: 120_000,
      seen: review,
    });
    const listed = await site.cli("restore", "list", "-o", "json");
    expect((listed.output.match(/"run"/g) ?? []).length, listed.output).toBe(FEW);
    const abandoned = await site.cli("restore", "abandon", "--all", "--yes");
    expect(abandoned.code, abandoned.output).toBe(0);
    await eventually(
      async () =>
        (
          await site.db.query<{ state: string }>("select state from runs where id = any($1)", [
            runs.map(({ runId }) => runId),
          ])
        ).every(({ state }) => state === "CANCELED"),
      { what: "the runs of the backup have ended", within: 120_000 },
    );
    expect(await site.effects(site.machines), "no machine was touched").toEqual(everywhere);
    note(
      `${FEW} runs, a backup from the middle is restored after their end`,
      ended,
      began,
      "no machine was touched; all 18 were abandoned",
    );
    await disturbed(`${FEW} runs afterwards`, { type: "REBOOT", most: 1 }, async () => {});
  });

  test("the primary of the database is lost, and its synchronous standby takes over", async () => {
    const standby = await site.postgres.addStandby();
    onTestFinished(() => standby.close());
    await site.db.close();
    const hosts = `${site.postgres.host},${standby.host}`;
    site.useDatabase(`postgresql://millwright@/${DATABASE}?host=${hosts}&target_session_attrs=read-write`);
    await rollOut();
    await disturbed(`${FEW} runs, the primary is lost and the standby promoted`, {}, async () => {
      await site.postgres.stop("immediate");
      await standby.promote();
    });
    const review = await site.cli("restore", "review");
    expect(review.output, "a failover is no restore").not.toContain("open");
    for (let at = 0; at < REPLICAS; at += 1) await site.stopReplica(at);
  });

  test("is written down", () => {
    const page = `${INTRODUCTION}${told.join("\n")}\n`;
    if (process.env.TRIAL_PAGE) writeFileSync(process.env.TRIAL_PAGE, page);
    expect(told.length).toBeGreaterThan(10);
  });
});

async function rollOut(): Promise<void> {
  for (let at = 0; at < REPLICAS; at += 1) {
    await site.stopReplica(at);
    await site.startReplica(at);
  }
}

const INTRODUCTION = `# An afternoon in production

\`npm run trial\` sets up a site by the production guide: Debian's PostgreSQL, ${REPLICAS} replicas behind Debian's HAProxy, and ${RACKS * 18} simulated
machines that count what is done to them. Then it disturbs the site while runs are at work. A part has passed when each run SUCCEEDED, each machine counted
exactly what one undisturbed run does, and no claim is left. This page was written by it, with what callers were told meanwhile.

| What happened | Outcome | Until all had ended | Callers were told |
|---|---|---|---|
`;
