import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { AgentDisk } from "./agent-disk.ts";
import { parseAgentConfig } from "./config.ts";
import { runAgent } from "./run-agent.ts";
import type { ServerCalls } from "./server-calls.ts";

test("a call for a task whose answer was lost is made again with the same claim; the next call has another", async () => {
  const directory = mkdtempSync(join(tmpdir(), "millwright-agent-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const disk = new AgentDisk(directory);
  disk.keepIdentity({ node: "fn-1", server: "http://127.0.0.1:1", bearer: "b", publicKey: "" });
  const end = new AbortController();
  const claims: string[] = [];
  const calls: Pick<ServerCalls, "sayHealth" | "wait"> = {
    async sayHealth() {},
    async wait(_, { claim }) {
      claims.push(claim);
      if (claims.length === 1) throw new Error("the connection was reset");
      if (claims.length === 3) end.abort();
      return null;
    },
  };
  const parts = {
    calls: calls as ServerCalls,
    disk,
    config: parseAgentConfig({}, "agent.json"),
    version: "1",
    log() {},
  };
  await expect(runAgent({ ...parts, readToken: () => "", signal: end.signal })).resolves.toBe("stopped");
  const [lost, again, next] = claims;
  expect(again).toBe(lost);
  expect(next).not.toBe(lost);
});
