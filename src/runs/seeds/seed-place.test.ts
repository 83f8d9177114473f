import { expect, test } from "vitest";
import { installerMark, isSeedKey, nodeOfPlace, placeOfNode, seedDirectory, seedKeyOf } from "./seed-place.ts";

test("the way to a seed is known to who knows the token, and gives it away to nobody", () => {
  const key = seedKeyOf("t1");
  expect(seedDirectory("http://server/", "run-1", key)).toBe(`http://server/seeds/run-1/${key}/`);
  expect(key).not.toContain("t1");
  expect(isSeedKey(key, "t1")).toBe(true);
  for (const wrong of ["", key.slice(1), seedKeyOf("t2"), installerMark("t1")])
    expect(isSeedKey(wrong, "t1")).toBe(false);
  expect(nodeOfPlace(placeOfNode("m-1"))).toBe("m-1");
  expect(nodeOfPlace("run-1")).toBeUndefined();
});
