import { expect, test } from "vitest";
import { summarizeTests } from "./test-summary.ts";

test("the last line counts what passed, failed and was skipped", () => {
  const summary = summarizeTests([
    { file: "a.test.ts", title: "one", state: "passed" },
    { file: "a.test.ts", title: "two", state: "passed" },
    { file: "b.test.ts", title: "three", state: "failed" },
  ]);
  expect(summary).toBe("2 passed, 1 failed, 0 skipped\n");
});

test("what was skipped is told by name, with the reason where there is one", () => {
  const summary = summarizeTests([
    { file: "a.test.ts", title: "with openssl", state: "skipped", note: "there is no openssl" },
    { file: "b.test.ts", title: "as root", state: "skipped" },
  ]);
  expect(summary).toBe(
    [
      "Skipped tests:",
      "  a.test.ts: with openssl (there is no openssl)",
      "  b.test.ts: as root",
      "0 passed, 0 failed, 2 skipped",
      "",
    ].join("\n"),
  );
});
