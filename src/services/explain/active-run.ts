import type { ThingKey } from "../../store/lifecycle/things.ts";
import { listRuns } from "../../store/run/runs.ts";
import type { ServiceDeps } from "../call/deps.ts";
import type { Explanation } from "./explanation.ts";
import { explainRun } from "./run.ts";

/**
 * Why a thing is as it is, by the run that works on it, such as a part of the work on its rack. Undefined: none does.
 *
 * @param about What is said of the thing itself.
 */
export async function explainByRun(
  deps: ServiceDeps,
  thing: ThingKey,
  about: string,
): Promise<Explanation | undefined> {
  const [run] = await listRuns(deps.db, { target: thing, activeOnly: true, limit: 1 });
  if (!run) return undefined;
  const explanation = await explainRun(deps, run.id);
  return { ...explanation, headline: `${about}: ${explanation.headline}` };
}
