import { expect, test } from "vitest";
import { joinFilters, limitOf } from "./list-options.ts";

test.each([
  [["", undefined], ""],
  [["rack=a"], "rack=a"],
  [["rack=a OR rack=b"], "rack=a OR rack=b"],
  [["rack=a", "failing=true"], "rack=a AND failing=true"],
  [["rack=a OR rack=b", "failing=true"], "(rack=a OR rack=b) AND failing=true"],
  [["rack=a or rack=b", undefined, "machine_id=m-1"], "(rack=a or rack=b) AND machine_id=m-1"],
])("%j together are %s", (parts, joined) => {
  expect(joinFilters(...parts)).toBe(joined);
});

test("a limit is a whole number of at least one", () => {
  expect([limitOf({}), limitOf({ limit: "7" })]).toEqual([undefined, 7]);
  for (const limit of ["0", "-1", "1.5", "x", ""]) expect(() => limitOf({ limit })).toThrow("--limit");
});
