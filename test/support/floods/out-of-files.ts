import { openSync } from "node:fs";
import { createConnection } from "node:net";
import { messageOf } from "../../../src/kernel/errors.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { createHttpExchange } from "../../../src/providers/transport/http-exchange.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";

/** Opens files until there are no more, then calls a BMC and the database, and says how each failed. */
const [databaseUrl = ""] = process.argv.slice(2);
const http = createHttpExchange({ largestAnswer: 1_000 });
const db = openDatabase(databaseUrl, { log: silentLog, applicationName: "out-of-files", max: 1 });
createConnection({ port: 1, host: "127.0.0.1" }).on("error", () => {}); // loads what a connection needs, which are files too

try {
  for (;;) openSync("/dev/null", "r");
} catch {
  const seen = await Promise.all([
    http
      .send({
        target: {
          address: "127.0.0.1",
          port: 1,
          scheme: "http",
          username: "u",
          password: "p",
          trust: { mode: "off" },
        },
        method: "GET",
        path: "/redfish/v1",
        headers: {},
        signal: AbortSignal.timeout(20_000),
      })
      .then(() => "answered", tell),
    db.query("select 1").then(() => "answered", tell),
  ]);
  process.stdout.write(JSON.stringify(seen));
}

function tell(error: unknown) {
  const { code, kind } = error as { readonly code?: string; readonly kind?: string };
  return { code: code ?? kind, message: messageOf(error) };
}
