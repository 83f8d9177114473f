import { type Batcher, createBatcher, runInHalves } from "../../kernel/batcher.ts";
import { AppError } from "../../kernel/errors.ts";
import { isUniqueViolation } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import type { Checked, ExpectedInput } from "./input.ts";

/** A row that a caller wants to add. */
interface Asked<I extends ExpectedInput> {
  readonly caller: Caller;
  readonly checked: Checked<I>;
}

export type AddRows<I extends ExpectedInput> = (
  deps: ServiceDeps,
  caller: Caller,
  rows: readonly Checked<I>[],
) => Promise<void>;

/** Each row takes up to four locks, which many transactions share. */
const MOST = 100;

/**
 * Rows are added under a lock over the whole set, one call after the other. Calls that come together are written together, in one
 * transaction, so that the inventory of a site takes no longer than its rows; a row that cannot be added keeps no other from it.
 */
export function addTogether<I extends ExpectedInput>(
  add: AddRows<I>,
): (deps: ServiceDeps, caller: Caller, checked: Checked<I>) => Promise<void> {
  const batchers = new WeakMap<ServiceDeps, Batcher<Asked<I>, unknown>>();
  const batcherOf = (deps: ServiceDeps) => {
    const known = batchers.get(deps);
    if (known) return known;
    const made = createBatcher<Asked<I>, unknown>({ most: MOST, atOnce: 1, run: (asked) => addAll(add, deps, asked) });
    batchers.set(deps, made);
    return made;
  };
  return async (deps, caller, checked) => {
    const refusal = await batcherOf(deps).submit({ caller, checked });
    if (refusal !== undefined) throw refusal;
  };
}

/** Of each row why it was not added; undefined: it was. */
async function addAll<I extends ExpectedInput>(
  add: AddRows<I>,
  deps: ServiceDeps,
  asked: readonly Asked<I>[],
): Promise<readonly unknown[]> {
  const refusals = new Map<Asked<I>, unknown>();
  for (const together of groupsOf(asked)) {
    const [first] = together;
    if (first === undefined) continue;
    const answers = await runInHalves(together, {
      run: async (some) => {
        await add(
          deps,
          first.caller,
          some.map(({ checked }) => checked),
        );
        return some.map(() => undefined as unknown);
      },
      isOfTheItem: (error) => (error instanceof AppError && error.kind !== "unavailable") || isUniqueViolation(error),
      alone: async (_, error) => error,
    });
    for (const [at, one] of together.entries()) refusals.set(one, answers[at]);
  }
  return asked.map((one) => refusals.get(one));
}

/** One transaction is journaled as one caller's, and has each BMC and each id once: who is late finds the row of the other. */
function groupsOf<I extends ExpectedInput>(asked: readonly Asked<I>[]): readonly (readonly Asked<I>[])[] {
  const groups: { readonly by: string; readonly words: Set<string>; readonly rows: Asked<I>[] }[] = [];
  for (const one of asked) {
    const by = JSON.stringify(doneBy(one.caller));
    const own = [one.checked.mac, one.checked.newId];
    const group = groups.find((each) => each.by === by && !own.some((word) => each.words.has(word)));
    if (group) {
      group.rows.push(one);
      for (const word of own) group.words.add(word);
    } else groups.push({ by, words: new Set(own), rows: [one] });
  }
  return groups.map(({ rows }) => rows);
}
