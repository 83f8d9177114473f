import { AppError } from "../../kernel/errors.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { explainAnyThing } from "./any-thing.ts";
import type { Explanation } from "./explanation.ts";

export type { ClaimLink, Explanation } from "./explanation.ts";

/** Explains the things of one kind. */
export type Explainer = (deps: ServiceDeps, id: string) => Promise<Explanation>;
export type Explainers = ReadonlyMap<string, Explainer>;

export interface ExplainDeps extends ServiceDeps {
  /** By kind. A kind without one is explained by its lifecycle alone. */
  readonly explainers: Explainers;
}

/** Why a thing is as it is, and what helps. Only reads. */
export async function explain(deps: ExplainDeps, { kind, id }: { kind: string; id: string }): Promise<Explanation> {
  if (!deps.stores.has(kind)) {
    const known = [...deps.stores.keys()].sort().join(", ");
    throw new AppError("invalid_argument", `kind: ${JSON.stringify(kind.slice(0, 80))} is none of ${known}`, {
      field: "kind",
    });
  }
  if (id === "") throw new AppError("invalid_argument", "id: is required", { field: "id" });
  const explainer = deps.explainers.get(kind);
  return explainer ? explainer(deps, id) : explainAnyThing(deps, kind, id);
}
