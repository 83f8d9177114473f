import { describe, expect, test } from "vitest";
import { parseRunFilter, runCondition } from "./filter.ts";

const valuesOf = (text: string) => runCondition(parseRunFilter(text)).values;

describe("a filter of runs by type", () => {
  test("finds it in whatever spelling a run of it can be started in", () => {
    for (const text of ["type=NET_RECONFIG", "type=net_reconfig", 'type="Net-Reconfig"', "type!=net-reconfig"])
      expect(valuesOf(text)).toEqual(valuesOf(text.replace(/=.*/, "=NET_RECONFIG")));
    expect(valuesOf("type IN (reboot, rma)")).toEqual(valuesOf("type IN (REBOOT, RMA)"));
    expect(valuesOf("type=reboot AND plan_id=reboot")).toEqual(["REBOOT", "reboot"]);
  });

  test("finds runs without one, and is refused with those that there are when there is no such type", () => {
    expect(parseRunFilter('type=""')).toMatchObject([{ value: "" }]);
    for (const text of ["type=rebot", "type!=rebot", "type IN (REBOOT, rebot)"])
      expect(() => parseRunFilter(text)).toThrow(
        `filter: at position ${text.indexOf("rebot") + 1}: expected for type one of REPAVE, RMA, REBOOT, UPGRADE, NET_RECONFIG, JOIN, found "rebot"`,
      );
  });
});
