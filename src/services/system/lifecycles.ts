import { AppError } from "../../kernel/errors.ts";
import type { Lifecycle, Thing } from "../../kernel/lifecycle.ts";
import type { ServiceDeps } from "../call/deps.ts";

/** In the order of their kinds. */
export const listLifecycles = ({ stores }: ServiceDeps): Lifecycle<Thing>[] =>
  [...stores.values()].map(({ lifecycle }) => lifecycle).sort((a, b) => (a.kind < b.kind ? -1 : 1));

export function getLifecycle(deps: ServiceDeps, kind: string): Lifecycle<Thing> {
  if (kind === "") throw new AppError("invalid_argument", "kind: is required", { field: "kind" });
  const lifecycle = deps.stores.get(kind)?.lifecycle;
  if (lifecycle) return lifecycle;
  const known = listLifecycles(deps).map((one) => one.kind);
  throw new AppError(
    "not_found",
    `there is no lifecycle ${JSON.stringify(kind.slice(0, 80))}; there are ${known.join(", ")}`,
    {
      field: "kind",
      next: "millwright lifecycle list",
    },
  );
}
