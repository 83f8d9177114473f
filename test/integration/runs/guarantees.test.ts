import { Code, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { PlanService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { Capability } from "../../../src/capabilities/provider.ts";
import { isUniqueViolation } from "../../../src/store/postgres/database.ts";
import { type RunSurface, startRunSurface } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";

/** What the specification promises of runs and their lists, whoever writes and however many there are. */
let surface: RunSurface;
beforeAll(async () => {
  const all: ReadonlySet<Capability> = new Set(["reset", "system"]);
  surface = await startRunSurface({ capabilitiesOf: () => all });
});
afterAll(() => surface.close());

/** A run like the one that was started, with these columns of its own; `n` counts from 1. */
const insertRuns = (count: number, own: { readonly [column: string]: string }) =>
  surface.db.query(
    `insert into runs (${Object.keys(own).join(", ")}, machine_id, fingerprint, plan_id, plan, initiator)
     select ${Object.values(own).join(", ")}, machine_id, '', plan_id, plan, initiator from runs r, generate_series(1, $2::int) as n
      where r.id = $1`,
    [runId, count],
  );
let runId: string;
let machineId: string;
beforeAll(async () => {
  machineId = await surface.addMachine("m-guaranteed");
  ({ runId } = await surface.runs.startRun({ requestId: "r", machineId, type: "REBOOT" }));
});

describe("the database itself", () => {
  test("holds one active run a machine, whoever writes", async () => {
    const own = { id: "'run-second'", request_id: "'other'", type: "type", job_id: "'job-second'", state: "'RUNNING'" };
    expect(await insertRuns(1, own).catch(isUniqueViolation)).toBe(true);
  });

  test("holds one run a machine and request, whoever writes", async () => {
    const own = { id: "'run-again'", request_id: "request_id", type: "type", job_id: "'job-again'", state: "'FAILED'" };
    expect(await insertRuns(1, own).catch(isUniqueViolation)).toBe(true);
  });
});

describe("lists without a page size", () => {
  test("of runs give the newest 1,000, and a token for the rest", async () => {
    const filter = "type=RMA";
    await insertRuns(1_001, {
      id: "'run-many-' || n",
      request_id: "'many-' || n",
      job_id: "'job-many-' || n",
      type: "'RMA'",
      state: "'SUCCEEDED'",
      created_at: "now() + n * interval '1 ms'",
    });
    const first = await surface.runs.listRuns({ filter });
    expect(first.runs).toHaveLength(1_000);
    expect(first.runs[0]?.runId).toBe("run-many-1001");
    const rest = await surface.runs.listRuns({ filter, pageToken: first.nextPageToken });
    expect(rest.runs.map((run) => run.runId)).toEqual(["run-many-1"]);
    expect(rest.nextPageToken).toBe("");
    for (const pageSize of [-1, 1_001])
      expect(await refusal(surface.runs.listRuns({ filter, pageSize }))).toMatchObject({
        code: Code.InvalidArgument,
        field: "page_size",
      });
  });

  test("of plans give 1,000, and a token for the rest", async () => {
    await surface.db.query(
      `insert into plans (plan_id, display_name, steps, created_by)
       select 'plan-many-' || n, '', '[]', 'tester' from generate_series(1, 1001) as n`,
    );
    const plans = createClient(PlanService, surface.transport);
    const first = await plans.listPlans({});
    expect(first.plans).toHaveLength(1_000);
    const rest = await plans.listPlans({ pageToken: first.nextPageToken });
    const ids = [...first.plans, ...rest.plans].map(({ planId }) => planId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => id.startsWith("plan-many-"))).toHaveLength(1_001);
  });

  test("take no token that somebody else made up", async () => {
    const own = { id: "'run-next-page'", request_id: "'next-page'", type: "type", job_id: "'job-next-page'" };
    await insertRuns(1, { ...own, state: "'SUCCEEDED'" });
    const { nextPageToken } = await surface.runs.listRuns({ pageSize: 1 });
    const [content = "", signature = ""] = nextPageToken.split(".");
    const told = JSON.parse(Buffer.from(content, "base64url").toString()) as object;
    const other = Buffer.from(JSON.stringify({ ...told, after: ["2000-01-01T00:00:00.000000Z", "a"] }));
    for (const pageToken of [
      `${other.toString("base64url")}.${signature}`,
      content,
      `${content}.AAAAAAAAAAAAAAAAAAAAAA`,
    ])
      expect(await refusal(surface.runs.listRuns({ pageSize: 1, pageToken }))).toMatchObject({
        code: Code.InvalidArgument,
        field: "page_token",
      });
  });
});
