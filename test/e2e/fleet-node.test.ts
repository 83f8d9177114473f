import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench, ROOT } from "../support/processes/process-bench.ts";
import { devTokenOf, type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** A GPU node of `millwright dev`, as an operator at a terminal brings it up: MAAS, its agent and the server are processes that call each other. */
let bench: ProcessBench;
let database: TestDatabase;
let server: ServerProcess;
beforeAll(async () => {
  bench = openProcessBench();
  database = await createTestDatabase();
  server = await startServerProcess(bench, {
    command: "dev",
    databaseUrl: database.url,
    env: { MILLWRIGHT_SIM_SITE: "racks=1,maas=1", MILLWRIGHT_SIM_SPEED: "2000" },
  });
});
afterAll(async () => {
  await bench.close();
  await database.drop();
});

async function done(...args: readonly string[]): Promise<string> {
  const started = bench.start({
    command: join(ROOT, "bin", "millwright"),
    args: ["--server", server.httpUrl, "--token", devTokenOf(server), ...args],
  });
  const { code } = await started.exited;
  expect({ args, code, said: started.transcript() }).toMatchObject({ code: 0 });
  return started.stdout();
}
/** What was printed, as it is; behind it what its reader adds. */
async function asPrinted(line: string, ...more: readonly string[]): Promise<void> {
  const [program, ...words] = line.split(" ");
  expect(program).toBe("millwright");
  await done(...words, ...more);
}
interface Detail {
  readonly node: { readonly id: string; readonly state: string; readonly machine_id: string };
  readonly job: { readonly state: string; readonly failure_class: string; readonly message: string };
  readonly next_command: string;
}
const detail = async (): Promise<Detail> => JSON.parse(await done("fleet", "show", "gpu-1", "-o", "json")) as Detail;
const untilJob = (state: string) =>
  eventually(
    async () => {
      const now = await detail();
      return now.job.state === state && now;
    },
    { what: `the job is ${state}`, within: 90_000, seen: async () => JSON.stringify(await detail()) },
  );

test("a node that lacks credentials says so, and is active once it has been given them", {
  timeout: 180_000,
}, async () => {
  const control = /simulator control\s+(\S+)/.exec(server.process.stdout())?.[1] ?? "";
  const maas = (await (await fetch(`${control}/maas`)).json()) as {
    hosts: { ipmi_address: string; ipmi_password: string }[];
  };
  const [host] = maas.hosts;
  const onboard = ["--site", "sim", "--profile", "sim", "--sku", "gpu8", "--hostname", "gpu-1"];
  const bmc = host?.ipmi_address ?? "";
  const free = { registers_machine: true, maas: { outcome: "create" } };
  const previewed = JSON.parse(await done("fleet", "onboard", ...onboard, "--ipmi-ip", bmc, "--dry-run", "-o", "json"));
  expect(previewed).toMatchObject({ ...free, obstacles: [], notes: [expect.stringContaining("credentials_missing")] });
  const shown = await done("fleet", "onboard", ...onboard, "--ipmi-ip", bmc, "--dry-run", "-o", "table");
  expect(shown).toMatch(/apply_roce_phase2 .*skipped: the profile assigns no RoCE addresses/);
  const overRest = await fetch(`${server.httpUrl}/api/v1/fleet/nodes/preview`, {
    method: "POST",
    headers: { authorization: `Bearer ${devTokenOf(server)}`, "content-type": "application/json" },
    body: JSON.stringify({ site: "sim", profile: "sim", sku: "gpu8", hostname: "gpu-1", ipmi_ip: bmc }),
  });
  expect(await overRest.json()).toMatchObject({ data: { ...free, machine_id: null, obstacles: [] } });
  expect(JSON.parse(await done("fleet", "list", "-o", "json"))).toEqual([]);
  await done("fleet", "onboard", ...onboard, "--ipmi-ip", bmc);
  const stuck = await untilJob("failed_manual_intervention");
  expect(stuck.job).toMatchObject({ failure_class: "credentials_missing" });

  const file = join(bench.directory, "password");
  writeFileSync(file, host?.ipmi_password ?? "");
  const account = ["--bmc-username", "maas", "--bmc-password-file", file];
  // At a terminal it asks for the account; here nobody can be asked.
  expect(stuck.next_command).toBe(`millwright machine set-credentials ${stuck.node.machine_id}`);
  await asPrinted(stuck.next_command, ...account);
  await asPrinted((await untilJob("failed_manual_intervention")).next_command);
  expect(await untilJob("completed")).toMatchObject({ node: { state: "active" } });
});
