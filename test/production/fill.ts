import { join } from "node:path";

/** As a process of its own, with the code of the checkout that is named: an earlier one writes what an earlier schema has. */
const [checkout = "", url = "", keyFile = "", controlUrl = ""] = process.argv.slice(2);
const from = (path: string) => import(join(checkout, path));
const { silentLog } = await from("src/kernel/log.ts");
const { openDatabase } = await from("src/store/postgres/database.ts");
const { openSecretStore } = await from("src/store/access/secrets.ts");
const { allStores } = await from("src/wiring/things/all-things.ts");
const { putSiteOnRecord } = await from("test/support/run-bench.ts");

async function call(method: string, path: string): Promise<unknown> {
  const answer = await fetch(new URL(path, controlUrl), { method });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const db = openDatabase(url, { log: silentLog, applicationName: "trial" });
await putSiteOnRecord({ db, stores: allStores, secrets: openSecretStore({ keyFile }), maxFindByIds: 100 }, call);
await db.close();
