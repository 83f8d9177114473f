import { silentLog } from "../../../src/kernel/log.ts";
import { migrate } from "../../../src/store/postgres/migrate.ts";

/** One replica's start: migrates and says what it applied. */
const [url = "", directory = ""] = process.argv.slice(2);
process.stdout.write(JSON.stringify(await migrate(url, { log: silentLog, directory })));
