import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { silentLog } from "../../../src/kernel/log.ts";
import { isUniqueViolation } from "../../../src/store/postgres/database.ts";
import { MIGRATIONS_DIRECTORY, migrate, readMigrations } from "../../../src/store/postgres/migrate.ts";
import { createTestDatabase } from "../../support/database.ts";
import { type RunSurface, startRunSurface } from "../../support/run-bench.ts";

const PLAN = {
  planId: "plan/reboot",
  displayName: "",
  steps: [{ name: "reboot", kind: "reboot", timeoutSeconds: 60, maxRetries: 0, payload: { force: true, mode: "bmc" } }],
};

/** As a replica of the version before runs had targets writes it. */
const INSERT_BEFORE = `insert into runs (id, machine_id, request_id, fingerprint, type, plan_id, plan, job_id, initiator, state)
  values ($1, $2, $1, '', '', 'plan/reboot', $3, 'job-of-' || $1, 'tester', $4)`;
const valuesBefore = (id: string, machineId: string, state: string) => [id, machineId, JSON.stringify(PLAN), state];

describe("runs of the version before they had targets", () => {
  test("are on their machines once the database was migrated, whatever state they are in", async () => {
    const directory = mkdtempSync(join(tmpdir(), "millwright-before-targets-"));
    const { db, url, drop } = await createTestDatabase({ empty: true });
    onTestFinished(async () => {
      rmSync(directory, { recursive: true });
      await drop();
    });
    for (const { id } of await readMigrations(MIGRATIONS_DIRECTORY))
      if (id < "0015") copyFileSync(join(MIGRATIONS_DIRECTORY, `${id}.sql`), join(directory, `${id}.sql`));
    await migrate(url, { log: silentLog, directory });
    for (const state of ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED"])
      await db.execute(INSERT_BEFORE, valuesBefore(`run-${state.toLowerCase()}`, `m-${state}`, state));
    await migrate(url, { log: silentLog });
    expect(
      await db.query("select target_kind, target_id = machine_id as is_machine, count(*)::int from runs group by 1, 2"),
    ).toEqual([{ target_kind: "machine", is_machine: true, count: 5 }]);
  });

  test("go on when a replica of that version starts one while others are replaced", async () => {
    const surface = await startRunSurface({ controller: true, fake: { speed: "instant" } });
    onTestFinished(() => surface.close());
    await surface.addMachine("m-old", "fake");
    await surface.db.execute(INSERT_BEFORE, valuesBefore("run-of-old-replica", "m-old", "PENDING"));
    await surface.db.execute("insert into work (kind, id) values ('run', 'run-of-old-replica')");
    expect(await surface.ended("run-of-old-replica")).toMatchObject({
      phase: Run_Phase.SUCCEEDED,
      machineId: "m-old",
    });
    const [row] = await surface.db.query("select target_kind, target_id from runs where id = 'run-of-old-replica'");
    expect(row).toEqual({ target_kind: "machine", target_id: "m-old" });
  });
});

describe("the database itself", () => {
  let surface: RunSurface;
  const insert = (run: Readonly<Record<string, string | number | null>>) => {
    const row = {
      request_id: String(run.id),
      fingerprint: "",
      type: "",
      plan_id: "p",
      plan: JSON.stringify(PLAN),
      job_id: `job-of-${run.id}`,
      initiator: "tester",
      state: "RUNNING",
      ...run,
    };
    const columns = Object.keys(row);
    return surface.db
      .execute(
        `insert into runs (${columns.join(", ")}) values (${columns.map((_, at) => `$${at + 1}`).join(", ")})`,
        Object.values(row),
      )
      .then(() => "written" as const)
      .catch((error: unknown) => (isUniqueViolation(error) ? ("there is one" as const) : ("refused" as const)));
  };
  const rack = { target_kind: "rack", target_id: "rack-1" };
  const child = { target_kind: "switch", target_id: "sw-1", parent_run_id: "run-a", parent_step: "flash" };

  test("holds one active run a target that somebody asked for, and one child a target in each round of a step", async () => {
    surface = await startRunSurface();
    onTestFinished(() => surface.close());
    expect(await insert({ id: "run-a", ...rack })).toBe("written");
    expect(await insert({ id: "run-b", ...rack })).toBe("there is one");
    expect(await insert({ id: "run-b", ...rack, target_kind: "switch" })).toBe("written");
    expect(await insert({ id: "run-c", ...rack, state: "FAILED" })).toBe("written");
    // The slot of a machine is one more thing that is held once, whatever the target is.
    expect(await insert({ id: "run-d", target_kind: "machine", target_id: "m-1", machine_id: "m-1" })).toBe("written");
    expect(await insert({ id: "run-e", target_kind: "fleet_node", target_id: "n-1", machine_id: "m-1" })).toBe(
      "there is one",
    );
    expect(await insert({ id: "run-f", target_kind: "machine", target_id: "m-1" })).toBe("there is one");
    expect(await insert({ id: "child-a", ...child, parent_round: 1 })).toBe("written");
    expect(await insert({ id: "child-b", ...child, parent_round: 1, state: "FAILED" })).toBe("there is one");
    expect(await insert({ id: "child-c", ...child, parent_round: 2 })).toBe("written");
    // A child stands beside whatever runs on its target.
    expect(await insert({ id: "run-g", target_kind: "switch", target_id: "sw-1" })).toBe("written");
    expect(await insert({ id: "child-d", ...child, parent_round: 3, machine_id: "m-2" })).toBe("refused");
    expect(await insert({ id: "child-e", ...child, parent_round: null })).toBe("refused");
  });
});
