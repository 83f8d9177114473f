import { GONE, type Lifecycle, type Row, rowsFrom, STAY } from "../../src/kernel/lifecycle.ts";

/** One row of the table, taken from a state that it applies to. */
export interface Step<T, S extends string = string> {
  readonly from: S;
  readonly row: Row<T, S>;
  /** Where it leads: equal to `from` for a row that stays; undefined when the thing is gone. */
  readonly to: S | undefined;
}

/** A walk from the initial state. */
export type Path<T, S extends string = string> = readonly Step<T, S>[];

/**
 * Walks that together take every row from every state it applies to, `ANY` rows included. They are what tests drive things
 * along, so that an edge cannot be added without being tried.
 *
 * Each walk goes on to the nearest edge not taken yet for as long as there is one in reach; the same table always gives the
 * same walks.
 */
export function pathsThrough<T, S extends string>(lifecycle: Lifecycle<T, S>): Path<T, S>[] {
  const steps = stepsOf(lifecycle);
  const taken = new Set<Step<T, S>>();
  const paths: Path<T, S>[] = [];
  for (;;) {
    const path: Step<T, S>[] = [];
    let at: S | undefined = lifecycle.initial;
    while (at !== undefined) {
      const leg: Path<T, S> | undefined = nearestNewStep(steps, taken, at);
      if (!leg) break;
      for (const step of leg) taken.add(step);
      path.push(...leg);
      at = leg.at(-1)?.to;
    }
    if (path.length === 0) return paths;
    paths.push(path);
  }
}

type Steps<T, S extends string> = ReadonlyMap<S, readonly Step<T, S>[]>;

function stepsOf<T, S extends string>(lifecycle: Lifecycle<T, S>): Steps<T, S> {
  const names = Object.keys(lifecycle.states) as S[];
  return new Map(names.map((from) => [from, rowsFrom(lifecycle, from).map((row) => stepAlong(from, row))]));
}

function stepAlong<T, S extends string>(from: S, row: Row<T, S>): Step<T, S> {
  const [, , to] = row;
  if (to === GONE) return { from, row, to: undefined };
  return { from, row, to: to === STAY ? from : to };
}

/** The shortest way from a state to an edge not taken yet, that edge included. */
function nearestNewStep<T, S extends string>(
  steps: Steps<T, S>,
  taken: ReadonlySet<Step<T, S>>,
  start: S,
): Path<T, S> | undefined {
  const seen = new Set<S>([start]);
  const ways: { readonly at: S; readonly way: Path<T, S> }[] = [{ at: start, way: [] }];
  for (const { at, way } of ways) {
    // An edge that ends the thing comes last, so that a walk is not over before its other edges were taken.
    const open = (steps.get(at) ?? []).filter((step) => !taken.has(step));
    const next = open.find((step) => step.to !== undefined) ?? open[0];
    if (next) return [...way, next];
    for (const step of steps.get(at) ?? []) {
      if (step.to === undefined || seen.has(step.to)) continue;
      seen.add(step.to);
      ways.push({ at: step.to, way: [...way, step] });
    }
  }
  return undefined;
}
