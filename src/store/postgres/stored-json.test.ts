import { describe, expect, test } from "vitest";
import { isFlag, isText, listOf, mapOf, oneOf, orNull, REQUIRED, readerOf, shapeOf } from "./stored-json.ts";

const read = readerOf({
  name: [orNull(isText), null],
  tags: [listOf(isText), []],
  versions: [orNull(mapOf(isText)), null],
  power: [orNull(oneOf(["on", "off"])), null],
  moved: [orNull(shapeOf({ from: isText, to: isText })), null],
  done: [isFlag, false],
});
const readNamed = readerOf({ name: [isText, REQUIRED] });

describe("what is stored", () => {
  test("is read with a value for every field, also for those that were not there yet", () => {
    expect(read({})).toEqual({ name: null, tags: [], versions: null, power: null, moved: null, done: false });
    const whole = {
      name: "a",
      tags: ["b"],
      versions: { c: "1" },
      power: "on",
      moved: { from: "d", to: "e" },
      done: true,
    };
    expect(read({ ...whole, unknown: 1 })).toEqual(whole);
  });

  test("is refused where a field is missing that has always been there", () => {
    expect(readNamed({ name: "" })).toEqual({ name: "" });
    expect(() => readNamed({})).toThrow("name cannot be undefined");
  });

  test.each([
    [null, "an object is wanted, not null"],
    [[], "an object is wanted"],
    [{ name: 1 }, "name cannot be 1"],
    [{ tags: ["a", null] }, "tags cannot be"],
    [{ tags: { 0: "a" } }, "tags cannot be"],
    [{ versions: { a: 1 } }, "versions cannot be"],
    [{ power: "away" }, 'power cannot be "away"'],
    [{ moved: { from: "a" } }, "moved cannot be"],
    [{ done: null }, "done cannot be null"],
  ])("as %j is refused, with the field that is wrong", (stored, message) => {
    expect(() => read(stored)).toThrow(message);
  });
});
