import { expect, test } from "vitest";
import { isFabricRunning } from "../../capabilities/rack/fabric.ts";
import { statusOf } from "./nvue-fabric.ts";

test.each([
  [{ status: "ok", "addition-info": "CONTROL_PLANE_STATE_CONFIGURED" }, true],
  [{ status: "ok", "additional-information": "CONTROL_PLANE_STATE_CONFIGURED" }, true],
  [{ status: "ok", "addition-info": "CONTROL_PLANE_STATE_UNCONFIGURED" }, false],
  [{ status: "not ok", reason: "GFM: UNINITIALIZED", "addition-info": "CONTROL_PLANE_STATE_CONFIGURED" }, false],
  [{ status: "constructor", "addition-info": "CONTROL_PLANE_STATE_CONFIGURED" }, false],
  [{}, false],
])("a controller that says %j runs the fabric: %s", (app, expected) => {
  expect(isFabricRunning(statusOf(app))).toBe(expected);
});
