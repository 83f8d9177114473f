import { expect, test } from "vitest";
import { rackFirmwareLifecycle } from "./lifecycle.ts";

test("the table of rack firmware", () => {
  const rows = rackFirmwareLifecycle.transitions.map(([from, { owner, name, failure }, to]) => [
    from,
    `${owner}${failure ? " failure" : ""} ${name}`,
    to,
  ]);
  expect(rows).toEqual([
    ["downloading", "handler artifacts_complete", "available"],
    ["downloading", "handler failure download_failed", "failed"],
    ["available", "caller download", "downloading"],
    ["failed", "caller download", "downloading"],
    ["*", "caller delete", "(gone)"],
  ]);
});
