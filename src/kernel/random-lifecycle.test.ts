/** Tables made at random, and things driven through them at random: what holds for every table that loads. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { pathsThrough } from "../../test/support/lifecycle-paths.ts";
import { decide, fail, follow, type Move } from "./decide.ts";
import {
  ANY,
  defineLifecycle,
  GONE,
  type Lifecycle,
  OWNERS,
  type Owner,
  type Row,
  STAY,
  type StateSpec,
  type Thing,
  type Trigger,
} from "./lifecycle.ts";
import { minutes } from "./time/duration.ts";

/** A thing whose guards and conditions hold by number. */
interface Toy extends Thing {
  readonly holds: readonly number[];
}
const NAMES = ["alpha", "beta", "gamma", "delta", "epsilon"] as const;
const WORDS = ["went", "came", "broke"] as const;

const guard = (number: number) =>
  Object.defineProperty((toy: Toy) => toy.holds.includes(number), "name", { value: `guard_${number}` });

const triggers = fc
  .record({
    owner: fc.constantFrom(...OWNERS),
    word: fc.constantFrom(...WORDS),
    failure: fc.boolean(),
    number: fc.nat(3),
  })
  .map(
    ({ owner, word, failure, number }): Trigger<Toy> =>
      owner === "controller"
        ? { owner, name: `guard_${number}`, failure: false, guard: guard(number) }
        : { owner, name: word, failure: owner === "handler" && failure },
  );
const rows = fc.tuple(
  fc.constantFrom(...NAMES, ANY),
  triggers,
  fc.constantFrom(...NAMES, GONE, STAY),
  fc.option(fc.nat(3), { nil: undefined }),
);
const specs = fc.constantFrom<StateSpec>(
  { doc: "at work", sla: minutes(5) },
  { doc: "at work, not for ever", sla: minutes(5), deadline: minutes(4) },
  { doc: "at work without bound" },
  { doc: "at rest", rest: true },
  { doc: "over", terminal: true },
);

interface Draft {
  readonly states: Record<string, StateSpec>;
  readonly transitions: readonly Row<Toy>[];
}

/** Any table at all, most of them wrong. */
const drafts: fc.Arbitrary<Draft> = fc
  .tuple(fc.array(specs, { minLength: 1, maxLength: NAMES.length }), fc.array(rows, { maxLength: 14 }))
  .map(([states, table]) => ({
    states: Object.fromEntries(states.map((spec, at) => [NAMES[at], spec])),
    transitions: table.map(([from, trigger, to, number]): Row<Toy> => {
      const provided = number !== undefined && trigger.owner !== "controller" ? { provided: guard(number) } : {};
      return [from, trigger, to, provided];
    }),
  }));

/** A draft made right: a chain through its states, then every row and every kind of state of the draft with which it still loads. */
const repaired: fc.Arbitrary<Draft> = drafts.map((draft) => {
  const names = Object.keys(draft.states);
  const chain = names.map(
    (name, at): Row<Toy> => [name, { owner: "caller", name: `next_${name}`, failure: false }, names[at + 1] ?? GONE],
  );
  let right: Draft = {
    states: Object.fromEntries(names.map((name) => [name, { doc: "at rest", rest: true }])),
    transitions: chain,
  };
  const keepIfItLoads = (next: Draft) => {
    if (tryLoad(next)) right = next;
  };
  for (const row of draft.transitions) keepIfItLoads({ ...right, transitions: [...right.transitions, row] });
  for (const [name, spec] of Object.entries(draft.states)) {
    keepIfItLoads({ ...right, states: { ...right.states, [name]: spec } });
  }
  return right;
});

function tryLoad({ states, transitions }: Draft): Lifecycle<Toy> | undefined {
  try {
    return defineLifecycle<Toy>()<string, readonly Row<Toy>[]>({ kind: "toy", initial: NAMES[0], states, transitions });
  } catch {
    return undefined;
  }
}

const lifecycles = fc
  .oneof({ weight: 1, arbitrary: drafts }, { weight: 3, arbitrary: repaired })
  .map(tryLoad)
  .filter((lifecycle) => lifecycle !== undefined);

/** Read from the table alone, without the functions under test. */
function appliesTo(lifecycle: Lifecycle<Toy>, [from, , to]: Row<Toy>, state: string): boolean {
  if (lifecycle.states[state]?.terminal) return false;
  return from === state || (from === ANY && to !== state);
}
const edges = (lifecycle: Lifecycle<Toy>): string[] =>
  lifecycle.transitions.flatMap((row, at) =>
    Object.keys(lifecycle.states)
      .filter((state) => appliesTo(lifecycle, row, state))
      .map((state) => `${state} by row ${at}`),
  );

describe("every table that loads", () => {
  test("has only states that can be reached, and no way into one that cannot be left or named", () => {
    fc.assert(
      fc.property(lifecycles, (lifecycle) => {
        const reached = new Set([lifecycle.initial]);
        for (let size = 0; size !== reached.size; ) {
          size = reached.size;
          for (const row of lifecycle.transitions) {
            const isOpen = [...reached].some((state) => appliesTo(lifecycle, row, state));
            if (isOpen && row[2] !== GONE && row[2] !== STAY) reached.add(row[2]);
          }
        }
        expect([...reached].sort()).toEqual(Object.keys(lifecycle.states).sort());
        for (const [name, spec] of Object.entries(lifecycle.states)) {
          if (spec.rest || spec.terminal) continue;
          expect(spec.sla).toBeDefined();
          expect(lifecycle.transitions.some((row) => appliesTo(lifecycle, row, name) && row[2] !== STAY)).toBe(true);
        }
      }),
    );
  });

  test("has paths that together take every row from every state it applies to, and nothing else", () => {
    fc.assert(
      fc.property(lifecycles, (lifecycle) => {
        const paths = pathsThrough(lifecycle);
        const visited = paths.flat().map(({ from, row }) => `${from} by row ${lifecycle.transitions.indexOf(row)}`);
        expect([...new Set(visited)].sort()).toEqual(edges(lifecycle).sort());
        for (const path of paths) {
          let at: string | undefined = lifecycle.initial;
          for (const { from, to } of path) {
            expect(from).toBe(at);
            at = to;
          }
        }
      }),
    );
  });
});

/** One thing that may happen to a thing, known to its table or not. */
type Event =
  | { readonly type: "look" }
  | { readonly type: "fail" }
  | { readonly type: "happen"; readonly owner: Exclude<Owner, "controller">; readonly name: string };

const strangeEvents: fc.Arbitrary<Event> = fc.oneof(
  fc.constant<Event>({ type: "look" }),
  fc.constant<Event>({ type: "fail" }),
  fc.record({
    type: fc.constant("happen" as const),
    owner: fc.constantFrom("handler" as const, "caller" as const, "agent" as const, "other" as const),
    name: fc.constantFrom(...WORDS, "unheard_of"),
  }),
);
/** What happens is mostly what some row of the table waits for, though seldom in the state that it is in. */
const story = fc.array(
  fc.record({
    pick: fc.option(fc.nat(100), { nil: undefined }),
    strange: strangeEvents,
    holds: fc.uniqueArray(fc.nat(3)),
  }),
  { minLength: 5, maxLength: 60 },
);
function eventFor(lifecycle: Lifecycle<Toy>, pick: number | undefined, strange: Event): Event {
  const row = pick === undefined ? undefined : lifecycle.transitions[pick % lifecycle.transitions.length];
  if (!row) return strange;
  const { owner, name } = row[1];
  return owner === "controller" ? { type: "look" } : { type: "happen", owner, name };
}

function react(lifecycle: Lifecycle<Toy>, toy: Toy, event: Event): Move | undefined {
  switch (event.type) {
    case "look": {
      const decision = decide(lifecycle, toy);
      return decision.kind === "move" ? decision.move : undefined;
    }
    case "fail":
      return fail(lifecycle, toy, { message: "it failed" });
    case "happen":
      return follow(lifecycle, toy, event);
  }
}

/** The row that should be taken, by the words of the table: the first that applies, answers to the event and may be taken. */
function expectedRow(lifecycle: Lifecycle<Toy>, toy: Toy, event: Event): Row<Toy> | undefined {
  return lifecycle.transitions.find((row) => {
    const [, trigger, , options] = row;
    if (!appliesTo(lifecycle, row, toy.state.name)) return false;
    if (event.type === "look")
      return trigger.owner === "controller" && toy.holds.includes(Number(trigger.name.slice(6)));
    if (options?.provided && !options.provided(toy)) return false;
    if (event.type === "fail") return trigger.failure;
    return trigger.owner === event.owner && trigger.name === event.name;
  });
}

test("a thing never leaves its table, whatever happens to it: every move is a row, and the first that applies", () => {
  let moves = 0;
  const owners = new Set<Owner>();
  fc.assert(
    fc.property(lifecycles, story, (lifecycle, happenings) => {
      let name = lifecycle.initial;
      for (const { pick, strange, holds } of happenings) {
        const event = eventFor(lifecycle, pick, strange);
        const toy: Toy = {
          id: "toy",
          version: 1,
          state: { name },
          stateSince: new Date(0),
          basis: 1,
          stateVersion: 1,
          facts: {},
          outcome: null,
          holds,
        };
        const move = react(lifecycle, toy, event);
        const row = expectedRow(lifecycle, toy, event);
        expect(move === undefined).toBe(row === undefined);
        if (!move || !row) continue;
        moves += 1;
        owners.add(move.owner);
        const [, trigger, to] = row;
        expect(move).toMatchObject({
          from: name,
          to: to === GONE || to === STAY ? name : to,
          gone: to === GONE,
          owner: trigger.owner,
          trigger: trigger.name,
        });
        expect(lifecycle.states).toHaveProperty(move.to);
        if (move.gone) return;
        name = move.to;
      }
    }),
    { numRuns: 300 },
  );
  // Tables in which nothing ever moves would prove nothing. Usual are 630, give or take 30: far above, so that luck never decides.
  expect(moves).toBeGreaterThan(300);
  expect([...owners].sort()).toEqual([...OWNERS].sort());
});
