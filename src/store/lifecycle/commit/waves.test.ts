import fc from "fast-check";
import { expect, test } from "vitest";
import { create, type Effect, log, move, observe, require, wake } from "../../../kernel/effects.ts";
import { caused, defineLifecycle, type Thing } from "../../../kernel/lifecycle.ts";
import { collectThingStores, nameOf } from "../things.ts";
import { keyOf, type Unit } from "./unit.ts";
import { touchedBy, wavesOf } from "./waves.ts";

const lifecycle = defineLifecycle<Thing>()({
  kind: "lamp",
  initial: "off",
  states: { off: { rest: true, doc: "Dark." } },
  transitions: [["off", caused("lit"), "off"]],
});
const stores = collectThingStores([{ lifecycle }]);
const thing = (id: string): Thing => ({
  id,
  version: 1,
  basis: 1,
  state: { name: "off" },
  stateSince: new Date(0),
  stateVersion: 1,
  facts: {},
  outcome: null,
});
const unit = (id: string, ...effects: Effect[]): Unit => ({ kind: "lamp", thing: thing(id), actor: "test", effects });
const inWaves = (units: readonly Unit[]) => wavesOf(new Map(units.map((one) => [one, touchedBy(stores, one)])));
const idsOf = (units: readonly Unit[]) => units.map((one) => one.thing.id);

test("units that only wake the same thing, or add to its log, are written together", () => {
  const [a, b, c] = [
    unit("a", wake(lifecycle, "hub"), log(lifecycle, "hub", [])),
    unit("b", wake(lifecycle, "hub")),
    unit("c", log(lifecycle, "hub", []), require(lifecycle, "hub")),
  ];
  expect(inWaves([a, b, c])).toEqual([[a, b, c]]);
});

test("a unit that changes what others read is written after those before it, and before those after it", () => {
  const units = [
    unit("a", require(lifecycle, "hub")),
    unit("b", observe(lifecycle, "hub", {})),
    unit("c", require(lifecycle, "hub")),
    unit("d", wake(lifecycle, "hub")),
  ];
  expect(inWaves(units).map(idsOf)).toEqual([["a", "d"], ["b"], ["c"]]);
});

const NAMES = ["a", "b", "c", "d", "e"];
const name = fc.constantFrom(...NAMES);
const effect = fc.oneof(
  name.map((id): Effect => wake(lifecycle, id)),
  name.map((id): Effect => log(lifecycle, id, [])),
  name.map((id): Effect => require(lifecycle, id)),
  name.map((id): Effect => move(lifecycle, id, "lit")),
  name.map((id): Effect => observe(lifecycle, id, {})),
  name.map((id): Effect => create(lifecycle, id, {})),
);
const WRITING = ["move", "observe", "create"];
const written = (one: Unit): string[] => [
  nameOf(keyOf(one)),
  ...(one.effects ?? []).filter(({ type }) => WRITING.includes(type)).map(nameOf),
];
const seen = (one: Unit): string[] => [
  ...written(one),
  ...(one.effects ?? []).filter(({ type }) => type === "require" || type === "log").map(nameOf),
];
const meet = (left: readonly string[], right: readonly string[]) => left.some((each) => right.includes(each));

test("whatever units do, each is in one wave, and no unit is in the wave of another that changes what it changes or reads", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.array(effect, { maxLength: 4 })), { maxLength: 12 }), (drawn) => {
      const units = drawn.map(([id, effects]) => unit(id, ...effects));
      const waves = inWaves(units);
      const waveOf = new Map(waves.flatMap((wave, index) => wave.map((one) => [one, index] as const)));
      expect(waveOf.size).toBe(units.length);
      for (const [index, later] of units.entries()) {
        for (const earlier of units.slice(0, index)) {
          if (meet(written(earlier), seen(later)) || meet(seen(earlier), written(later)))
            expect(waveOf.get(earlier)).toBeLessThan(waveOf.get(later) ?? 0);
        }
        const { written: changed, read } = touchedBy(stores, later);
        expect([...changed, ...read].map(nameOf)).toEqual(expect.arrayContaining(seen(later)));
      }
    }),
  );
});
