import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { rigStores } from "../../../support/rigs/rig-engine.ts";
import { type RigSurface, startRigSurface } from "../../../support/rigs/rig-surface.ts";
import { rigSteps } from "../../../support/rigs/steps.ts";
import { afterAll, beforeAll } from "../../../support/second-try.ts";
import { refusal } from "../../api/forge-under-test.ts";

/** Runs on racks and switches, in the same words over gRPC and as JSON over HTTP. Nobody carries them out. */
let surface: RigSurface;
beforeAll(async () => {
  surface = await startRigSurface({ stores: rigStores, steps: rigSteps });
  for (let nth = 1; nth <= 6; nth++) await insert(`r${nth}`, { rack: nth, phase: nth % 2 ? "FAILED" : "SUCCEEDED" });
  await insert("child", { rack: 1, parent: "r1" });
});
afterAll(() => surface.close());

interface Inserted {
  readonly rack: number;
  readonly phase?: string;
  readonly parent?: string;
  /** Minutes after the first. */
  readonly minute?: number;
}
const PLAN = JSON.stringify({ planId: "rack-work", displayName: "", steps: [] });
async function insert(id: string, { rack, phase = "PENDING", parent, minute = rack }: Inserted): Promise<void> {
  const created = new Date(Date.UTC(2026, 0, 1, 0, minute));
  await surface.db.execute(
    `insert into runs (id, target_kind, target_id, parent_run_id, parent_step, parent_round, request_id, fingerprint, type, plan_id,
       plan, job_id, initiator, state, created_at)
     values ($1, $2, $3, $4, $5, $6, $1, '', '', 'rack-work', $7, 'job-' || $1, $8, $9, $10)`,
    [
      id,
      parent ? "switch" : "rack",
      `rack-${rack}`,
      parent ?? null,
      parent ? "flash" : null,
      parent ? 1 : null,
      PLAN,
      rack > 3 ? "Night shift" : "ann",
      phase,
      created,
    ],
  );
}

interface Asked {
  readonly filter?: string;
  readonly orderBy?: string;
  readonly pageSize?: number;
  readonly pageToken?: string;
  readonly withTotal?: boolean;
  readonly children?: boolean;
}
interface Answer {
  readonly ids: readonly (string | undefined)[];
  readonly total: number | undefined;
  readonly next: string;
}

async function overGrpc(asked: Asked): Promise<Answer> {
  const { runs, totalSize, nextPageToken } = await surface.client(RunService).listRuns(asked);
  return { ids: runs.map(({ run }) => run?.runId), total: totalSize, next: nextPageToken };
}

async function post(asked: Asked): Promise<Response> {
  const headers = { "content-type": "application/json" };
  const url = new URL("/millwright.v1.RunService/ListRuns", surface.httpUrl);
  return fetch(url, { method: "POST", headers, body: JSON.stringify(asked) });
}
async function asJson(asked: Asked): Promise<Answer> {
  const answer = (await (await post(asked)).json()) as {
    readonly runs?: readonly { readonly run: { readonly runId: string } }[];
    readonly totalSize?: number;
    readonly nextPageToken?: string;
  };
  const { runs = [], totalSize, nextPageToken = "" } = answer;
  return { ids: runs.map(({ run }) => run.runId), total: totalSize, next: nextPageToken };
}

describe.each([
  ["gRPC", overGrpc],
  ["JSON", asJson],
])("ListRuns over %s", (_, list) => {
  // biome-ignore format: a table is read by its columns
  test.each<[Asked, readonly string[]]>([
    [{},                                                                ["r6", "r5", "r4", "r3", "r2", "r1"]],
    [{ orderBy: "phase, target_id desc" },                              ["r5", "r3", "r1", "r6", "r4", "r2"]],
    [{ orderBy: "created_at" },                                         ["r1", "r2", "r3", "r4", "r5", "r6"]],
    [{ filter: "target_id=rack-1 OR target_id=rack-4" },                ["r4", "r1"]],
    [{ filter: "NOT (phase=FAILED OR target_id=rack-6)" },              ["r4", "r2"]],
    [{ filter: "initiator~SHIFT AND phase=FAILED" },                    ["r5"]],
    [{ filter: "initiator^=night" },                                    ["r6", "r5", "r4"]],
    [{ filter: "initiator!~night AND created_at>=2026-01-01T00:02:00Z" }, ["r3", "r2"]],
    [{ filter: "parent_run_id=r1" },                                    []],
    [{ filter: "parent_run_id=r1", children: true },                    ["child"]],
    [{ filter: "target_id IN (rack-1)", children: true, orderBy: "run_id" }, ["child", "r1"]],
  ])("%j has %j", async (asked, ids) => {
    const answer = await list({ ...asked, withTotal: true });
    expect(answer).toEqual({ ids, total: ids.length, next: "" });
  });

  test("counts only when it is asked to, and all pages then", async () => {
    expect((await list({ pageSize: 2 })).total).toBeUndefined();
    expect(await list({ pageSize: 2, withTotal: true })).toMatchObject({ ids: ["r6", "r5"], total: 6 });
  });
});

test("pages show each run once, whatever comes in between, in any order", async () => {
  for (const orderBy of ["", "target_id", "phase desc, created_at", "finished_at desc, target_id"]) {
    const seen: (string | undefined)[] = [];
    const before = (await overGrpc({ orderBy, children: true })).ids;
    let pageToken = "";
    let page = 0;
    do {
      const answer = await overGrpc({ orderBy, children: true, pageSize: 2, pageToken });
      seen.push(...answer.ids);
      pageToken = answer.next;
      page += 1;
      // Among those that were shown already, and among those that are yet to be shown.
      const minutes = page < 4 ? [0, 3, 10] : [];
      for (const minute of minutes) await insert(`new-${page}-${minute}`, { rack: 3, minute, phase: "FAILED" });
    } while (pageToken !== "");
    expect(new Set(seen).size, orderBy).toBe(seen.length);
    expect(
      seen.filter((id) => before.includes(id)),
      orderBy,
    ).toEqual(before);
    await surface.db.execute("delete from runs where id like 'new-%'");
  }
});

test("refuses an order, a filter and a token that cannot be meant, in both", async () => {
  const { next } = await overGrpc({ pageSize: 2 });
  for (const asked of [
    { orderBy: "colour" },
    { orderBy: "parent_run_id" },
    { filter: "colour=red" },
    { filter: "phase=NOWHERE" },
    { pageToken: next, orderBy: "target_id" },
    { pageToken: next, children: true },
    { pageToken: "rubbish" },
    { pageSize: -1 },
  ]) {
    expect(await refusal(surface.client(RunService).listRuns(asked)), JSON.stringify(asked)).toMatchObject({
      code: Code.InvalidArgument,
    });
    expect((await post(asked)).status, JSON.stringify(asked)).toBe(400);
  }
});
