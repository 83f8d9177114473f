import { AppError } from "../../kernel/errors.ts";
import type { AnyStep } from "../../runs/model/step.ts";
import { BUILT_IN_PLANS } from "../../runs/plans/built-in.ts";
import { describeRunbook, type Runbook, type RunbookOrigin, type Runbooks } from "../../runs/steps/scripts/runbooks.ts";
import type { Database } from "../../store/postgres/database.ts";
import { listPlans } from "../../store/run/plans.ts";
import { troubleWithScripts } from "./references.ts";

export interface ScriptDeps {
  readonly db: Database;
  readonly runbooks: Pick<Runbooks, "find" | "refs" | "refresh">;
  readonly steps: ReadonlyMap<string, AnyStep>;
}

export interface ScriptView {
  readonly ref: string;
  readonly digest: string;
  readonly sizeBytes: number;
  readonly description: string;
  readonly variables: string;
  readonly origin: RunbookOrigin;
  /** In the order of their ids. */
  readonly planIds: readonly string[];
}

/** In the order of their names. */
export async function listScripts(deps: ScriptDeps): Promise<ScriptView[]> {
  troubleWithScripts(deps); // those of before are then listed; a run of one is refused and says why
  const users = await plansByScript(deps);
  return deps.runbooks.refs.flatMap((ref) => {
    const found = deps.runbooks.find(ref);
    return found ? [viewOf(found, users)] : [];
  });
}

export async function getScript(deps: ScriptDeps, ref: string): Promise<ScriptView & { readonly text: string }> {
  troubleWithScripts(deps);
  const found = deps.runbooks.find(ref);
  if (!found) {
    throw new AppError("not_found", `there is no script ${JSON.stringify(ref.slice(0, 128))}`, {
      field: "ref",
      next: "millwright script list",
    });
  }
  return { ...viewOf(found, await plansByScript(deps)), text: found.text };
}

const viewOf = (runbook: Runbook, users: ReadonlyMap<string, ReadonlySet<string>>): ScriptView => ({
  ref: runbook.ref,
  digest: runbook.digest,
  sizeBytes: Buffer.byteLength(runbook.text, "utf8"),
  ...describeRunbook(runbook),
  origin: runbook.origin,
  planIds: [...(users.get(runbook.ref) ?? [])].sort(),
});

async function plansByScript({ db, steps }: ScriptDeps): Promise<Map<string, Set<string>>> {
  const users = new Map<string, Set<string>>();
  for (const plan of [...BUILT_IN_PLANS, ...(await listPlans(db, {}))]) {
    for (const step of plan.steps) {
      for (const { kind, ref } of steps.get(step.kind)?.refersTo(step.payload) ?? []) {
        if (kind === "script") users.set(ref, (users.get(ref) ?? new Set()).add(plan.planId));
      }
    }
  }
  return users;
}
