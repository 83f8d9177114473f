import { Controller } from "../../../src/engine/controller.ts";
import type { HandlerOf } from "../../../src/engine/pass.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { happened, type Outcome } from "../../../src/kernel/outcome.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import { crateStores } from "../crate.ts";

/** Everything is done at once, so that only claims can keep a thing waiting. */
const EVENTS: Readonly<Record<string, string>> = {
  "crate working": "worked",
  "crate checking": "checked",
  "chore pending": "begun",
  "chore doing": "ended",
};

const handlersOf =
  (kind: string): HandlerOf =>
  (state) => {
    const event = EVENTS[`${kind} ${state}`];
    return event === undefined ? undefined : async (): Promise<Outcome> => happened(event);
  };

/** As a process of its own: a controller of crates and chores, until it is killed at its fail point or told to end. */
const db = openDatabase(process.argv[2] ?? "", { log: silentLog, applicationName: "crates" });
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
const controller = new Controller({
  db,
  stores: crateStores,
  log: silentLog,
  handlers: new Map(["crate", "chore", "widget"].map((kind) => [kind, handlersOf(kind)])),
});
await db.listen("millwright", () => controller.nudge(), stop.signal);
await controller.run(stop.signal);
await db.close();
