import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { TASK_TYPES } from "../../../src/cli/agent/trusted-task.ts";
import {
  bootstrapCommandOf,
  cloudConfigOf,
  SEED_SCRIPT,
  seedVariablesOf,
} from "../../../src/lifecycles/fleet-node/agent-bootstrap.ts";
import { isFleetTaskType } from "../../../src/lifecycles/fleet-task/fleet-task.ts";
import { findHeartbeats } from "../../../src/store/fleet/agents.ts";
import { eventually } from "../../support/eventually.ts";
import { type FleetServer, startFleetServer } from "../../support/fleet/fleet-server.ts";
import { ROOT } from "../../support/processes/process-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let it: FleetServer;
beforeAll(async () => {
  it = await startFleetServer();
});
afterAll(() => it.close());

/** `millwright agent run` as a process of its own, with what cloud-init would have written for it. */
async function startAgent(node: string, options: { readonly config?: object; readonly token?: string } = {}) {
  const directory = join(it.directory, node);
  mkdirSync(directory, { recursive: true });
  const { config = {}, token = await it.issue(node) } = options;
  writeFileSync(join(directory, "node.json"), JSON.stringify({ server: it.server.httpUrl, node }));
  writeFileSync(join(directory, "enrolment-token"), `${token}\n`);
  writeFileSync(join(directory, "agent.json"), JSON.stringify(config));
  const start = () => {
    const args = ["agent", "run", "--directory", directory, "--state-dir", join(directory, "state")];
    const child = spawn(join(ROOT, "bin", "millwright"), args, { stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    const hear = (chunk: Buffer) => {
      said += chunk.toString();
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
    return { ended, kill: (signal: NodeJS.Signals) => child.kill(signal), said: () => said };
  };
  return { directory, start };
}
const isWell = (node: string, said: () => string) =>
  eventually(async () => (await findHeartbeats(it.db, [node])).get(node)?.health === "healthy", {
    what: "the agent says that the node is well",
    seen: said,
  });
const ended = (task: string, said: () => string) =>
  eventually(
    async () => {
      const found = await it.taskOf(task);
      return found.state.name !== "queued" && found.state.name !== "dispatched" && found;
    },
    { what: "the task has ended", seen: said },
  );

test("the agent enrols, wipes what its configuration lists, survives a kill, and is gone once it is uninstalled", async () => {
  const node = await it.makeNode();
  const disk = join(it.directory, "disk.img");
  writeFileSync(disk, Buffer.alloc(1_000_000, 0x5a));
  const { directory, start } = await startAgent(node, {
    config: { drain: { command: ["/bin/true"] }, storage: { devices: [disk] } },
  });
  const first = start();
  await isWell(node, first.said);
  const cleaned = await ended(await it.makeTask(node, { type: "node.cleanup_storage" }), first.said);
  expect(cleaned).toMatchObject({ state: { name: "completed" }, facts: { result: { devices: [{ wiped: true }] } } });
  expect(readFileSync(disk).every((byte) => byte === 0)).toBe(true);
  const gpus = await ended(await it.makeTask(node, { type: "node.scrub_gpu" }), first.said);
  expect(gpus).toMatchObject({ state: { name: "failed" }, facts: { message: expect.stringContaining("scrub GPUs") } });

  first.kill("SIGKILL");
  await first.ended;
  const second = start();
  const drained = await ended(await it.makeTask(node, { type: "node.drain" }), second.said);
  expect(drained).toMatchObject({ state: { name: "completed" }, facts: { result: { drained: true } } });
  const uninstalled = await ended(await it.makeTask(node, { type: "node.uninstall" }), second.said);
  expect(uninstalled.state.name).toBe("completed");
  expect(await second.ended).toBe(0);
  expect(existsSync(join(directory, "state", "identity.json"))).toBe(false);
});

test("an agent whose token is refused says so, and ends", async () => {
  const node = await it.makeNode();
  const { start } = await startAgent(node, { token: "mwe_not-the-token-of-this-node" });
  const agent = start();
  expect(await agent.ended).toBe(5);
  expect(agent.said()).toContain("the enrolment is refused");
});

test("an agent that somebody else sends tasks does none of them", async () => {
  const node = await it.makeNode();
  const disk = join(it.directory, "other-disk.img");
  writeFileSync(disk, Buffer.alloc(1_000, 0x5a));
  const { start } = await startAgent(node, { config: { storage: { devices: [disk] } } });
  const genuine = start();
  await isWell(node, genuine.said);
  genuine.kill("SIGKILL");
  await genuine.ended;
  // Whoever stands in the server's place now has the bearer, and not the key.
  let asked = 0;
  const signed = JSON.stringify({
    ...{ task_id: "ft-x", node_id: node, task_type: "node.cleanup_storage", params: {} },
    expires_at: new Date(Date.now() + 60_000).toISOString(),
  });
  const impostor = createServer((request, response) => {
    const isWait = request.url?.includes("/tasks/wait");
    if (isWait) asked += 1;
    response.end(JSON.stringify(isWait ? { task: { signed, signature: Buffer.alloc(64).toString("base64") } } : {}));
  });
  await new Promise<void>((resolve) => impostor.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void impostor.close());
  const { port } = impostor.address() as AddressInfo;
  const state = join(it.directory, node, "state", "identity.json");
  const identity = JSON.parse(readFileSync(state, "utf8")) as object;
  writeFileSync(state, JSON.stringify({ ...identity, server: `http://127.0.0.1:${port}` }));
  const misled = start();
  await eventually(async () => asked >= 2, { what: "it asks again", seen: misled.said });
  expect(misled.said()).toContain("a task is refused: its signature is not the server's");
  expect(readFileSync(disk).every((byte) => byte === 0x5a)).toBe(true);
});

test("the agent knows the types of tasks that the server has, and no other", () => {
  expect(TASK_TYPES.filter((type) => !isFleetTaskType(type))).toEqual([]);
  expect(isFleetTaskType("node.shell")).toBe(false);
});

test("what is told over SSH, or by the owner of the host, is what cloud-init would have written, whatever the values hold", () => {
  const root = join(it.directory, "seeded");
  const bin = join(root, "bin");
  for (const directory of [bin, join(root, "etc/systemd/system"), join(root, "var")])
    mkdirSync(directory, { recursive: true });
  const called = join(root, "called");
  for (const name of ["millwright", "systemctl"])
    writeFileSync(join(bin, name), `#!/bin/sh\necho ${name} "$@" >> ${called}\n`, { mode: 0o755 });
  const bootstrap = { server: "https://mill.example:8080/$(id)'\"", nodeId: "fn-1", token: "mwe_a-b_c" };
  const script = SEED_SCRIPT.replaceAll(/(?<=\s)\/(etc|var)\//g, `${root}/$1/`);
  const PATH = `${bin}:/usr/bin:/bin`;
  const inBase64 = /^echo (\S+) \| base64 -d \| sudo sh$/.exec(bootstrapCommandOf(bootstrap))?.[1] ?? "";
  const ofOwner = Buffer.from(inBase64, "base64").toString();
  expect(ofOwner.endsWith(SEED_SCRIPT), "one script for both").toBe(true);
  const { write_files: files } = JSON.parse(cloudConfigOf(bootstrap).replace("#cloud-config\n", "")) as {
    write_files: readonly { path: string; content: string; permissions: string }[];
  };
  expect(files).toHaveLength(3);
  for (const [input, env] of [
    [script, { ...seedVariablesOf(bootstrap), PATH }],
    [ofOwner.slice(0, -SEED_SCRIPT.length) + script, { PATH }],
  ] as const) {
    for (const { path } of files) rmSync(root + path, { force: true });
    for (let time = 0; time < 2; time += 1)
      expect(spawnSync("/bin/sh", ["-s"], { input, env, encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
    for (const { path, content, permissions } of files) {
      expect(readFileSync(root + path, "utf8")).toBe(content);
      expect((statSync(root + path).mode & 0o777).toString(8)).toBe(permissions.slice(1));
    }
  }
  expect(readFileSync(called, "utf8")).toContain("systemctl restart millwright-agent.service");
});
