import type { LeaseTimes } from "../../../src/engine/lease/lease.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import { startRigEngine } from "../rigs/rig-engine.ts";

export interface UploadReplicaOrder {
  readonly url: string;
  readonly instance: string;
  /** Absent: the stock ones. */
  readonly lease?: LeaseTimes;
}

/** As a process of its own: a replica that carries out runs on rigs until it is ended. */
async function serve({ url, instance, lease }: UploadReplicaOrder): Promise<void> {
  const db = openDatabase(url, { log: silentLog, applicationName: instance });
  const engine = await startRigEngine(db, { instance, ...(lease && { lease }) });
  process.stdout.write("ready\n");
  await new Promise((resolve) => process.once("SIGTERM", resolve));
  await engine.stop();
  await db.close();
}

if (process.argv[1] === import.meta.filename) {
  const [order = ""] = process.argv.slice(2);
  await serve(JSON.parse(order) as UploadReplicaOrder);
}
