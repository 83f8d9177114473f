import { AppError } from "../../kernel/errors.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { explainAnyThing } from "./any-thing.ts";
import { explainExpectedPowerShelf } from "./expected-power-shelf.ts";
import type { Explanation } from "./explanation.ts";
import { explainInstall } from "./install.ts";
import { explainMachine } from "./machine.ts";
import { explainPowerShelf } from "./power-shelf.ts";
import { explainRun } from "./run.ts";

export type { ClaimLink, Explanation } from "./explanation.ts";

const EXPLAINERS: Readonly<Record<string, (deps: ServiceDeps, id: string) => Promise<Explanation>>> = {
  machine: explainMachine,
  run: explainRun,
  install: explainInstall,
  power_shelf: explainPowerShelf,
  expected_power_shelf: explainExpectedPowerShelf,
};

/** Why a thing is as it is, and what helps. Only reads. */
export async function explain(deps: ServiceDeps, { kind, id }: { kind: string; id: string }): Promise<Explanation> {
  if (!deps.stores.has(kind)) {
    const known = [...deps.stores.keys()].sort().join(", ");
    throw new AppError("invalid_argument", `kind: ${JSON.stringify(kind.slice(0, 80))} is none of ${known}`, {
      field: "kind",
    });
  }
  if (id === "") throw new AppError("invalid_argument", "id: is required", { field: "id" });
  const explainer = Object.hasOwn(EXPLAINERS, kind) ? EXPLAINERS[kind] : undefined;
  return explainer ? explainer(deps, id) : explainAnyThing(deps, kind, id);
}
