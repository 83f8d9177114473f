import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { EventSchema } from "../../../../contract/millwright/v1/event_pb.js";
import { admits, eventFilterFrom } from "./event-filter.ts";

const event = create(EventSchema, { kind: "run", type: "transition", alarm: "failed", actor: "kim" });

test.each<[Record<string, string>, boolean]>([
  [{}, true],
  [{ kinds: "machine, run" }, true],
  [{ kinds: "machine" }, false],
  [{ types: "failed" }, true],
  [{ types: "created" }, false],
  [{ kinds: "run", types: "transition", actors: "kim" }, true],
  [{ kinds: "run", actors: "pat" }, false],
])("%j admits a failed run of kim's: %j", (search, isAdmitted) => {
  expect(admits(eventFilterFrom(search), event)).toBe(isAdmitted);
});
