import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type DevSite, startDevSite } from "../support/dev-site.ts";
import { ROOT } from "../support/processes/process-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** The programs of examples/, each on a machine of its own of a whole `millwright dev`. */
let site: DevSite;
beforeAll(async () => {
  site = await startDevSite({ MILLWRIGHT_SIM_SPEED: "400" });
}, 90_000);
afterAll(() => site.close());

const EXAMPLES = join(ROOT, "examples");
const hasCurl = spawnSync("curl", ["--fail-with-body", "--version"]).status === 0;
const python = ["/usr/bin/python3", "python3"].find(
  (candidate) => spawnSync(candidate, ["-c", "import grpc, google.protobuf"]).status === 0,
);

async function run(command: string, ...args: readonly string[]) {
  const started = site.bench.start({
    command,
    args,
    env: {
      MILLWRIGHT_SERVER: site.server.httpUrl,
      MILLWRIGHT_GRPC: site.server.grpcAddress,
      MILLWRIGHT_TOKEN: site.token,
      HOME: site.bench.directory,
    },
  });
  const { code } = await started.exited;
  return { code, stdout: started.stdout(), stderr: started.stderr(), transcript: started.transcript() };
}

interface RunJson {
  readonly runId: string;
  readonly requestId: string;
  readonly phase: string;
}
const runsOf = async (machineId: string): Promise<readonly RunJson[]> =>
  (
    await site.server.ask<{ runs?: RunJson[] }>(
      "baremetal.v1.RunService/ListRuns",
      { filter: `machine_id=${machineId}` },
      site.token,
    )
  ).runs ?? [];

describe("the TypeScript client", () => {
  const repave = (...args: string[]) =>
    run(join(ROOT, "bin", "node"), join(EXAMPLES, "typescript", "repave.ts"), ...args);

  test("repaves a machine, shows steps and log as they come, and follows the same run when it is called again", async () => {
    const first = await repave("m-rack1-01", "example-1");
    expect(first.code, first.transcript).toBe(0);
    for (const step of ["set-netboot", "reboot-to-netboot", "repave-image", "join-cluster", "verify-in-cluster"])
      expect(first.stdout).toContain(`step ${step} is done`);
    // Those that take their time; of the others, one event may tell of the beginning and of the end.
    for (const step of ["reboot-to-netboot", "repave-image", "join-cluster"])
      expect(first.stderr).toContain(`== RUNNING, ${step}`);
    expect(first.stderr).toMatch(/\nSUCCEEDED\n$/);
    const again = await repave("m-rack1-01", "example-1");
    expect(again).toMatchObject({ code: 0, stdout: first.stdout });
    expect(await runsOf("m-rack1-01")).toMatchObject([{ requestId: "example-1", phase: "SUCCEEDED" }]);
  });

  test("ends with 1 when the run fails, and says why", async () => {
    await site.simulator.call("POST", "/faults", { device: "m-rack1-02", fault: { type: "join_fails" } });
    const { code, stderr } = await repave("m-rack1-02");
    expect(code, stderr).toBe(1);
    expect(stderr).toMatch(/FAILED: join-cluster: .*exit code 1/);
  });

  test("ends with 2 when nothing could be started, and says why", async () => {
    expect(await repave("m-nowhere")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("not started: NotFound: machine m-nowhere does not exist"),
    });
  });
});

test("curl repaves a machine, and is told what it did wrong", async ({ skip }) => {
  if (!hasCurl) skip("needs curl 7.76 or newer");
  const script = join(EXAMPLES, "curl", "repave.sh");
  const done = await run(script, "m-rack1-03", "example-3");
  expect(done.code, done.transcript).toBe(0);
  expect(done.stdout).toMatch(/== RUNNING [a-z-]+[\s\S]*== SUCCEEDED/);
  expect(await runsOf("m-rack1-03")).toMatchObject([{ requestId: "example-3", phase: "SUCCEEDED" }]);
  expect(await run(script, "m-nowhere")).toMatchObject({ code: 2, stderr: expect.stringContaining("does not exist") });
});

test("Python without its libraries is told which one is missing, and how to get it", async ({ skip }) => {
  if (spawnSync("python3", ["--version"]).status !== 0) skip("needs python3");
  // -I -S: nothing but the standard library, whatever is installed.
  const { code, stderr } = await run("python3", "-I", "-S", join(EXAMPLES, "python", "repave.py"), "m-rack1-05");
  expect(code).toBe(2);
  expect(stderr).toMatch(/^not started: .*pip install grpcio protobuf\n$/);
});

test("Python repaves a machine, and is told what it did wrong", async ({ skip }) => {
  if (python === undefined) skip("needs Debian's python3-grpcio and python3-protobuf");
  const script = join(EXAMPLES, "python", "repave.py");
  const done = await run(python ?? "", script, "m-rack1-04", "example-4");
  expect(done.code, done.transcript).toBe(0);
  expect(done.stdout).toContain("step verify-in-cluster is done");
  expect(await runsOf("m-rack1-04")).toMatchObject([{ requestId: "example-4", phase: "SUCCEEDED" }]);
  expect(await run(python ?? "", script, "m-nowhere")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("not started: NOT_FOUND"),
  });
});
