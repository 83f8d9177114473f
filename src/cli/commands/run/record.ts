import { type Run, RunSchema } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import {
  type ChildRun,
  type RunParent,
  type RunRecord,
  RunRecordSchema,
  RunService,
  type RunTarget,
  type StepDetail,
} from "../../../../contract/millwright/v1/run_pb.js";
import { type Json, jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";

/** A run with what it works on, whose part it is, and the runs that it has started. */
export interface ShownRun {
  readonly run: Run;
  readonly target: Pick<RunTarget, "kind" | "id">;
  readonly parent?: RunParent | undefined;
  readonly children: readonly ChildRun[];
  /** One for each step of the run; none where the answer that it came with has none. */
  readonly stepDetails: readonly StepDetail[];
}

/** @throws Error where the server left out what it always sends. */
export function shownOf(record: RunRecord | undefined): ShownRun {
  const { run, target, parent, children = [], stepDetails = [] } = record ?? {};
  if (!run) throw new Error("the server answered without the run");
  return { run, target: target ?? { kind: "machine", id: run.machineId }, parent, children, stepDetails };
}

export async function readRun(session: Session, runId: string): Promise<ShownRun> {
  const client = await session.client(RunService);
  return shownOf((await client.getRun({ runId }, { signal: session.signal })).run);
}

/** The run's own fields, as ever, and beside them what it works on and what it is a part of. */
export function runJson({ run, ...more }: ShownRun): Json {
  const { run: _, ...others } = jsonOf(RunRecordSchema, {
    $typeName: RunRecordSchema.typeName,
    target: { $typeName: "millwright.v1.RunTarget", kind: more.target.kind, id: more.target.id },
    ...(more.parent && { parent: more.parent }),
    children: [...more.children],
    stepDetails: [...more.stepDetails],
  }) as { readonly [name: string]: Json };
  return { ...(jsonOf(RunSchema, run) as { readonly [name: string]: Json }), ...others };
}

/** As `--target` takes it. */
export const targetText = ({ kind, id }: Pick<RunTarget, "kind" | "id">): string => `${kind}/${id}`;
