import { type Duration, milliseconds } from "../../kernel/time/duration.ts";
import type { Step } from "../../runs/model/plan/plan.ts";
import type { Queryable } from "../postgres/database.ts";

/** What steps of one kind differ in, as far as it tells how long they take: an image, a script, a way to do it. */
const DISTINGUISHING = ["image_ref", "script_ref", "mode"] as const;
const NEWEST_RUNS = 200;

interface DurationRow {
  kind: string;
  what: string;
  median_ms: number;
  p95_ms: number;
  samples: number;
}

/** How long steps took when they were proved. */
export interface StepDuration {
  readonly median: Duration;
  readonly p95: Duration;
  readonly samples: number;
}

/** The same for such steps; undefined when none was proved. */
export type StepDurations = (step: Pick<Step, "kind" | "payload">) => StepDuration | undefined;

/**
 * The median over the newest runs of the plan, and over the newest of all, on machines of the same provider. Nothing is written
 * for it: runs keep what their steps took anyway, so that the estimate costs the caller, and never a run.
 */
export async function readStepDurations(
  db: Queryable,
  { planId, provider }: { readonly planId: string; readonly provider: string },
): Promise<StepDurations> {
  const newest = (where: string) =>
    `(select r.id from runs r ${where} order by r.created_at desc, r.id desc limit ${NEWEST_RUNS})`;
  const rows = await db.query<DurationRow>(
    `with recent as (${newest("where r.plan_id = $1")} union ${newest("")})
     select p.step ->> 'kind' as kind, ${whatSql("p.step -> 'payload'")} as what,
            percentile_cont(0.5) within group (order by extract(epoch from
              (v.visit ->> 'finishedAt')::timestamptz - (v.visit ->> 'startedAt')::timestamptz))::float8 * 1000 as median_ms,
            percentile_cont(0.95) within group (order by extract(epoch from
              (v.visit ->> 'finishedAt')::timestamptz - (v.visit ->> 'startedAt')::timestamptz))::float8 * 1000 as p95_ms,
            count(*)::int as samples
       from recent join runs r using (id) join machines m on m.id = r.machine_id
            cross join lateral jsonb_array_elements(r.facts -> 'steps') as v(visit)
            join lateral jsonb_array_elements(r.plan -> 'steps') as p(step) on p.step ->> 'name' = v.visit ->> 'name'
      where m.provider = $2 and jsonb_typeof(r.facts -> 'steps') = 'array'
        and r.action <> 'adopt' and v.visit ->> 'state' = 'SUCCEEDED' and coalesce(v.visit ->> 'carriedOver', 'false') = 'false'
        and coalesce(v.visit ->> 'resumed', 'false') = 'false' -- who found it done did not see how long it took
      group by 1, 2`,
    [planId, provider],
  );
  const known = new Map(
    rows.map(({ kind, what, median_ms, p95_ms, samples }) => [
      `${kind} ${what}`,
      { median: milliseconds(Math.round(median_ms)), p95: milliseconds(Math.round(p95_ms)), samples },
    ]),
  );
  return ({ kind, payload }) => known.get(`${kind} ${whatOf(payload)}`);
}

const whatSql = (payload: string): string =>
  `coalesce(${DISTINGUISHING.map((name) => `${payload} ->> '${name}'`).join(", ")}, '')`;

const whatOf = (payload: Step["payload"]): string => {
  const value = DISTINGUISHING.map((name) => payload[name]).find((each) => each !== undefined && each !== null);
  return typeof value === "string" ? value : "";
};
