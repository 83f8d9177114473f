import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { openProcessBench, type ProcessBench, ROOT } from "../support/processes/process-bench.ts";
import { adminToken, type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** A node from its registration to its third failure and back, as an operator at a terminal sees it. */
let bench: ProcessBench;
let database: TestDatabase;
let server: ServerProcess;
let token: string;
beforeAll(async () => {
  bench = openProcessBench();
  database = await createTestDatabase();
  token = await adminToken(database);
  server = await startServerProcess(bench, { command: "serve", databaseUrl: database.url });
});
afterAll(async () => {
  await bench.close();
  await database.drop();
});

const hasCurl = spawnSync("curl", ["--version"]).status === 0;
const MAC = "02:00:5e:10:00:01";
const ID = "m-02005e100001";

async function run(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const started = bench.start({
    command: join(ROOT, "bin", "millwright"),
    args: ["--server", server.httpUrl, "--token", token, ...args],
  });
  const { code } = await started.exited;
  return { code, stdout: started.stdout(), stderr: started.stderr() };
}
async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...args);
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
  return stdout;
}

/** What an operator sends in the place of an installer. */
async function report(body: object): Promise<string> {
  const url = `${server.httpUrl}/api/v1/report`;
  const bearer = `authorization: Bearer ${token}`;
  const sent = JSON.stringify({ mac_address: MAC, ...body });
  const curl = bench.start({
    command: "curl",
    args: ["-sS", "-f", "-X", "POST", "-H", "content-type: application/json", "-H", bearer, "-d", sent, url],
  });
  expect(await curl.exited, curl.transcript()).toEqual({ code: 0, signal: null });
  return (JSON.parse(curl.stdout()) as { message: string }).message;
}

test("register, approve, report, show, history, retry, stalled: the whole walk", { timeout: 120_000 }, async ({
  skip,
}) => {
  if (!hasCurl) skip("needs curl");
  const file = join(bench.directory, "workflow.yaml");
  for (const id of ["ubuntu-2404", "debian-13"]) {
    writeFileSync(file, `id: ${id}\nname: ${id}\nboot: {method: kernel, kernel_url: /files/vmlinuz}\n`);
    expect(await done("workflow", "create", "-f", file)).toBe(`Workflow ${id} created.\n`);
  }
  expect(await done("workflow", "list")).toMatch(/debian-13[\s\S]*ubuntu-2404/);
  await done("group", "create", "gpu", "--workflow", "debian-13");
  expect(await done("node", "register", "--mac", MAC, "--group", "gpu")).toBe(
    `Node ${ID} is on record, as discovered.\n`,
  );
  await done("node", "approve", ID, "--workflow", "ubuntu-2404", "--comment", "racked");

  expect(await report({ installation_status: "started" })).toBe("Installation started");
  expect(await report({ installation_status: "progress", installation_progress: 40 })).toBe(
    "Status reported successfully",
  );
  expect(await done("node", "show", ID)).toMatch(/installing[\s\S]*40 %[\s\S]*ubuntu-2404[\s\S]*History/);
  for (const end of ["(attempt 1), will retry", "(attempt 2), will retry", "after 3 attempts"])
    expect(await report({ installation_status: "failed", installation_error: "Disk not found" })).toContain(end);

  const history = JSON.parse(await done("node", "history", ID, "-o", "json")) as { to_state: string }[];
  expect(history).toMatchObject([
    { to_state: "install_failed", triggered_by: "node_report", metadata: { error: "Disk not found", attempt: 3 } },
    { to_state: "installing" },
    { to_state: "pending", triggered_by: "admin", user_id: "tester", comment: "racked" },
  ]);

  const refused = await run("node", "retry", ID, "--workflow", "debian-13");
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining("force") });
  expect(await done("node", "retry", ID, "--workflow", "debian-13", "--force")).toBe(`Node ${ID} is pending.\n`);
  await report({ installation_status: "started" });
  expect((await run("node", "stalled")).stderr).toBe("No node is stalled.\n");
  await database.db.execute("update installs set state_since = now() - interval '2 hours' where id = $1", [ID]);
  expect(await done("node", "stalled")).toContain(ID);

  // The same node through what all kinds have in common.
  expect(await done("history", "node", ID)).toMatch(/discovered → pending[\s\S]*install_failed/);
  expect(await done("history", "node", ID, "--type", "assigned")).toContain("assigned");
  expect(await done("explain", "node", ID)).toContain(`install ${ID} is installing`);
  const watching = bench.start({
    command: join(ROOT, "bin", "millwright"),
    args: [
      "--server",
      server.httpUrl,
      "--token",
      token,
      "watch",
      "node",
      ID,
      "--from",
      "oldest",
      "--limit",
      "2",
      "-o",
      "json",
    ],
  });
  expect(await watching.exited, watching.transcript()).toEqual({ code: 0, signal: null });
  expect(await done("group", "show", "gpu")).toMatch(/Nodes: +1/);
  expect((await run("group", "delete", "gpu", "--yes")).code).toBe(4);
});
