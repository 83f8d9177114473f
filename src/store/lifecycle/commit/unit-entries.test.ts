import { expect, test } from "vitest";
import type { Thing } from "../../../kernel/lifecycle.ts";
import type { ThingStores } from "../things.ts";
import type { Unit } from "./unit.ts";
import { tellUnit } from "./unit-entries.ts";

const stores = new Map([
  [
    "device",
    {
      lifecycle: { kind: "device", quietFacts: [], listFacts: {} },
      replacedFacts: { certificateFingerprint: "certificate_replaced" },
    },
  ],
]) as unknown as ThingStores;
const unitOf = (known: object, facts: object) =>
  ({
    kind: "device",
    actor: "run r1",
    thing: { id: "d1", facts: known, outcome: null } as unknown as Thing,
    facts,
  }) as unknown as Unit;

test.each([
  [
    "another one than the one on record",
    { certificateFingerprint: "AA" },
    { certificateFingerprint: "BB" },
    "certificate_replaced",
  ],
  ["the first", { certificateFingerprint: null }, { certificateFingerprint: "BB" }, "facts_changed"],
  ["the one on record, beside another fact", { certificateFingerprint: "AA", slot: 1 }, { slot: 2 }, "facts_changed"],
])("a certificate that is %s", (_, known, facts, type) => {
  expect(tellUnit(stores, unitOf(known, facts))).toMatchObject([{ kind: "device", id: "d1", actor: "run r1", type }]);
});
