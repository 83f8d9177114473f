import { milliseconds } from "../src/kernel/time/duration.ts";
import { openSecretStore } from "../src/store/access/secrets.ts";
import { type DatabaseConfig, openDatabase } from "../src/store/postgres/database.ts";
import { allStores } from "../src/wiring/things/all-things.ts";
import { benchLog } from "./bench-server.ts";
import { createInstantMachines } from "./instant-machines.ts";
import { machinesInDatabase } from "./machines-in-database.ts";
import { startRunService } from "./run-service.ts";

/** One replica, in a process that can be killed; started by `kill.ts`, which it tells when it is up. */
const [configText = "", keyFile = "", instance = "", bootTakes = "0"] = process.argv.slice(2);
const config = JSON.parse(configText) as DatabaseConfig;

const db = openDatabase(config, { log: benchLog, applicationName: instance });
const hardware = openDatabase(config, { log: benchLog, applicationName: `${instance} hardware` });
const deps = { db, stores: allStores, secrets: openSecretStore({ keyFile }), maxFindByIds: 100 };
const machines = createInstantMachines({
  memory: machinesInDatabase(hardware),
  bootTakes: milliseconds(Number(bootTakes)),
});
const service = await startRunService(deps, machines, { instance });
process.send?.("up");
process.once("disconnect", async () => {
  await service.stop();
  await Promise.all([db.close(), hardware.close()]);
  process.exit(0);
});
