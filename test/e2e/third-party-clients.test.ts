import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type DevSite, startDevSite } from "../support/dev-site.ts";
import { eventually } from "../support/eventually.ts";
import { ROOT } from "../support/processes/process-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** Clients that we did not write do the README's example, with no schema but what reflection tells them. */
let site: DevSite;
beforeAll(async () => {
  site = await startDevSite();
});
afterAll(() => site.close());

/** Debian puts its modules where only its own Python looks, which need not be the first on PATH. */
const python = ["/usr/bin/python3", "python3"].find(
  (candidate) => spawnSync(candidate, ["-c", "import grpc, google.protobuf"]).status === 0,
);
const buf = join(ROOT, "node_modules", ".bin", "buf");

async function run(command: string, ...args: string[]): Promise<string> {
  const started = site.bench.start({ command, args, env: { HOME: site.bench.directory } });
  const exit = await started.exited;
  expect(exit, started.transcript()).toEqual({ code: 0, signal: null });
  return started.stdout();
}

const powerOf = async (id: string) => {
  const [shelf] = await site.database.db.query<{ name: string }>("select name from power_shelves where id = $1", [id]);
  return (await site.simulator.device(shelf?.name ?? "")).power;
};

test("python3-grpcio powers a shelf off", async ({ skip }) => {
  if (python === undefined) skip("needs Debian's python3-grpcio and python3-protobuf");
  const script = join(import.meta.dirname, "third-party", "power_off.py");
  const told = JSON.parse(await run(python ?? "", script, site.server.grpcAddress, site.token));
  const [id] = site.shelfIds;
  expect(told).toEqual({ shelves: 8, id, before: "on", after: "off", moved: true });
  expect(await powerOf(told.id)).toBe("off");
});

test("python3-grpcio is told which method the server does not have", async ({ skip }) => {
  if (python === undefined) skip("needs Debian's python3-grpcio and python3-protobuf");
  const script = join(import.meta.dirname, "third-party", "unknown_method.py");
  expect(JSON.parse(await run(python ?? "", script, site.server.grpcAddress))).toEqual({
    code: "UNIMPLEMENTED",
    details: "this server has no method /forge.Forge/SelfDestruct",
  });
});

test("buf curl powers a shelf off", async ({ skip }) => {
  if (!existsSync(buf)) skip("needs npm's @bufbuild/buf");
  const curl = async <T>(method: string, request: unknown): Promise<T> => {
    const flags = ["--http2-prior-knowledge", "--protocol", "grpc", "-H", `authorization: Bearer ${site.token}`];
    const url = `http://${site.server.grpcAddress}/forge.Forge/${method}`;
    return JSON.parse(await run(buf, "curl", ...flags, "-d", JSON.stringify(request), url)) as T;
  };
  interface Found {
    powerShelves: { id: { id: string }; controllerState: string; status: { powerState: string } }[];
  }
  const all = await curl<Found>("FindPowerShelves", {});
  expect(all.powerShelves).toHaveLength(8);
  const id = all.powerShelves.at(-1)?.id ?? { id: "" };
  await curl("SetPowerShelfMaintenance", {
    powerShelfIds: [id],
    operation: "POWER_SHELF_MAINTENANCE_OPERATION_POWER_OFF",
  });
  await eventually(
    async () => {
      const [shelf] = (await curl<Found>("FindPowerShelvesByIds", { powerShelfIds: [id] })).powerShelves;
      return shelf?.controllerState === '{"state":"ready"}' && shelf.status.powerState === "off";
    },
    { what: "the shelf is seen ready and off", seen: site.server.process.transcript },
  );
  expect(await powerOf(id.id)).toBe("off");
});
