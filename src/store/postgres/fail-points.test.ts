import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { parseFailPoint } from "./fail-points.ts";

const SCRIPT = `
  import { failPoint } from ${JSON.stringify(import.meta.resolve("./fail-points.ts"))};
  import { writeSync } from "node:fs";
  for (let pass = 1; pass <= 3; pass += 1) {
    failPoint("after:commit");
    writeSync(1, String(pass));
    failPoint("after:commit@home");
    failPoint("handled", [{ kind: "rack" }, { kind: "shelf", state: pass === 2 ? "ready" : "error" }]);
  }
`;

test.each([
  ["after:commit", "", "SIGKILL"],
  ["after:commit@1", "", "SIGKILL"],
  ["after:commit@3", "12", "SIGKILL"],
  ["after:commit@home", "1", "SIGKILL"],
  ["after:commit@4", "123", null],
  ["after", "123", null],
  ["handled@2", "12", "SIGKILL"],
  ["handled:rack@3", "123", "SIGKILL"],
  ["handled:shelf:ready", "12", "SIGKILL"],
  ["handled:shelf:ready@2", "123", null],
  ["handled:sh", "123", null],
  ["", "123", null],
])("with MILLWRIGHT_FAILPOINT=%j the process gets as far as %j and ends by %s", (setting, output, signal) => {
  const args = ["--input-type=module", "--eval", SCRIPT];
  const ended = spawnSync(process.execPath, args, { env: { MILLWRIGHT_FAILPOINT: setting }, encoding: "utf8" });
  expect({ output: ended.stdout, signal: ended.signal, errors: ended.stderr }).toEqual({ output, signal, errors: "" });
});

test("the number after the last @ is the pass", () => {
  expect(parseFailPoint("a@b@12")).toEqual({ name: "a@b", pass: 12, action: "die" });
});

test("with stop= in front the process is paused there, and goes on when it is told to", async () => {
  const args = ["--input-type=module", "--eval", SCRIPT];
  const child = spawn(process.execPath, args, { env: { MILLWRIGHT_FAILPOINT: "stop=after:commit@2" } });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
  });
  const stateOf = () => /^State:\s+(\S)/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1];
  await vi.waitUntil(() => stateOf() === "T", { timeout: 10_000 });
  expect(output).toBe("1");
  child.kill("SIGCONT");
  expect(await once(child, "close")).toEqual([0, null]);
  expect(output).toBe("123");
});
