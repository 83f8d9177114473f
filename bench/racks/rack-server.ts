import pg from "pg";
import { createSeededValues } from "../../simulator/seeded-values.ts";
import { loadSite } from "../../simulator/site.ts";
import { loadConfig } from "../../src/config.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { startServer } from "../../src/wiring/server.ts";
import { createInstantSite } from "./instant-site.ts";

/** A whole server whose devices are in its own process; started by `rack-process.ts`, which it tells what it does. */
const [site = "racks=1"] = process.argv.slice(2);

let statements = 0;
const { query } = pg.Client.prototype;
// Every statement of the pools and of the listeners goes through here.
pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
  statements += 1;
  return Reflect.apply(query, this, given);
} as typeof query;

const { config } = loadConfig({ env: process.env, argv: [], profile: "serve" });
const commands = {
  onCommand(device: string, command: string) {
    process.send?.({ device, command, at: process.hrtime.bigint().toString() });
  },
};
const server = await startServer({
  config,
  log: createLog(config.log),
  version: "bench",
  signal: new AbortController().signal,
  hardware: createInstantSite(loadSite(site, createSeededValues(1)), commands),
});
process.send?.({ grpcAddress: server.grpcAddress, httpUrl: server.httpUrl });
process.on("message", () => process.send?.({ statements }));
process.once("disconnect", async () => {
  await server.stop();
  process.exit(0);
});
