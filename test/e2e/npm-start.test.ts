import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MachineService } from "../../contract/millwright/v1/machine_pb.js";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench, ROOT, type StartedProcess } from "../support/processes/process-bench.ts";
import { killAll, processesIn, processesTold } from "../support/processes/process-table.ts";

/** What the README says of `npm start`: two racks, each of eight power shelves, nine switches and 18 machines. */
const SHELVES = 16;
const SWITCHES = 18;
const MACHINES = 36;

/** The machine that nobody has registered shows up beside them, once it has booted. */
const isInRack = ({ machineId }: { readonly machineId: string }): boolean => machineId.startsWith("m-rack");

let bench: ProcessBench;
beforeEach(() => {
  bench = openProcessBench();
});
afterEach(async () => {
  killAll(processesTold(bench.directory));
  await bench.close();
});

/** As in the README, but for a place and ports of its own. */
const start = (command: string, args: readonly string[]): StartedProcess =>
  bench.start({
    command,
    args,
    env: {
      MILLWRIGHT_DATA_DIR: join(bench.directory, "data"),
      MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
      MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
      npm_config_cache: join(bench.directory, "npm"),
      npm_config_update_notifier: "false",
    },
  });

async function list<T>(...words: readonly string[]): Promise<readonly T[]> {
  const listing = start(join(ROOT, "bin", "millwright"), [...words, "list", "-o", "json"]);
  const exit = await listing.exited;
  expect(exit, listing.transcript()).toEqual({ code: 0, signal: null });
  return JSON.parse(listing.stdout()) as readonly T[];
}

/** Everything of it that lives, its database and its simulator too. */
const living = () => [...processesTold(bench.directory), ...processesIn(bench.directory)];

/** As it is written there. Once the loop has shown that it installs, for half a minute, the rest is simulated faster. */
async function runInstallSection(npm: StartedProcess): Promise<void> {
  const control = /simulator control\s+(\S+)/.exec(npm.stdout())?.[1] ?? "";
  const section = readFileSync(join(ROOT, "README.md"), "utf8").split("## Install over the network")[1] ?? "";
  const block = /```sh\n([\s\S]*?)```/.exec(section)?.[1] ?? "exit 1";
  expect(block).not.toContain("curl");
  const shell = start("sh", ["-e", "-c", `cd '${ROOT}'\n${block}`]);
  await shell.said(/m-02005e100001 .* discovered[\s\S]* installing /);
  await fetch(`${control}/speed`, { method: "PUT", body: JSON.stringify({ speed: 400 }) });
  expect(await shell.exited, shell.transcript()).toEqual({ code: 0, signal: null });
  expect(shell.stdout()).toMatch(/ installing [\s\S]*write image +boot +completed[\s\S]* is active/);
}

test("`npm start` starts all that the README promises, and Ctrl-C to npm alone ends all of it", async () => {
  const npm = start("npm", ["start"]);
  const [, tokenFile = ""] = await npm.said(/admin token\s+(\S+)/);
  expect(npm.stdout()).toContain(`${SHELVES} power shelves, ${SWITCHES} switches and ${MACHINES} machines`);
  expect(npm.stdout()).toContain(`export MILLWRIGHT_DATA_DIR='${join(bench.directory, "data")}'`);
  const addressOf = (name: string) => new RegExp(`${name}\\s+(\\S+)`).exec(npm.stdout())?.[1] ?? "";

  const headers = {
    authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}`,
    "content-type": "application/json",
  };
  const answer = await fetch(`${addressOf("API \\(JSON\\)")}/millwright.v1.MachineService/ListMachines`, {
    method: "POST",
    headers,
    body: "{}",
  });
  const { machines } = (await answer.json()) as { machines: { machineId: string }[] };
  expect(machines.filter(isInRack)).toHaveLength(MACHINES);
  expect((await fetch(addressOf("REST reference"))).status).toBe(200);

  const transport = createGrpcTransport({
    baseUrl: `http://${addressOf("API \\(gRPC\\)")}`,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", headers.authorization);
        return next(request);
      },
    ],
  });
  const listed = await createClient(MachineService, transport).listMachines({});
  expect(listed.machines.filter(isInRack)).toHaveLength(MACHINES);

  // The README's next command; the shelves are found one after the other.
  await eventually(async () => (await list("power-shelf")).length === SHELVES, {
    what: "all power shelves are found",
    seen: npm.transcript,
  });

  const records = await eventually(
    async () => {
      const all = await list<{ id: string; state: string; is_default: boolean }>("rack-firmware");
      return all.every(({ state }) => state === "available") ? all : undefined;
    },
    { what: "all rack firmware is there", seen: npm.transcript },
  );
  const defaults = records.filter(({ is_default }) => is_default).map(({ id }) => id);
  expect(defaults.toSorted()).toEqual(["fw-v2.0-liteon", "fw-v2.0-standard"]);

  await runInstallSection(npm);

  expect(living().some(({ command }) => command.includes("postgres"))).toBe(true);
  expect(living().some(({ command }) => command.includes("simulator/main.ts"))).toBe(true);
  npm.signal("SIGINT");
  expect(await npm.exited, npm.transcript()).toEqual({ code: 0, signal: null });
  expect(living()).toEqual([]);
  expect(existsSync(join(bench.directory, "data", "postgres", "data", "postmaster.pid"))).toBe(false);
  expect(npm.transcript()).not.toMatch(/did not stop cleanly|"level":"error"|npm error/);
}, 180_000);
