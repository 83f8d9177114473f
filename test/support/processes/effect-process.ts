import { follow } from "../../../src/kernel/decide.ts";
import { alert, create, move, observe, request, wake } from "../../../src/kernel/effects.ts";
import type { Lifecycle, Thing } from "../../../src/kernel/lifecycle.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import { getWidget, widgetLifecycle, widgetStores } from "../widget.ts";

/** Commits one unit with every kind of effect, and says what became of it. To be killed in the middle of it. */
const [url = ""] = process.argv.slice(2);
const db = openDatabase(url, { log: silentLog, applicationName: "millwright-test" });
const thing = await getWidget(db, "rack");
const settled = follow(widgetLifecycle as unknown as Lifecycle<Thing>, thing, { owner: "handler", name: "settled" });
if (!settled) throw new Error(`the rack is ${thing.state.name}`);
const [result] = await db.transaction((tx) =>
  commitUnits(tx, widgetStores, [
    {
      kind: "widget",
      thing,
      move: settled,
      facts: { size: 1 },
      actor: "test",
      effects: [
        observe(widgetLifecycle, "tray", { size: 2 }),
        move(widgetLifecycle, "tray", "kicked", { message: "first" }),
        move(widgetLifecycle, "tray", "employed", { message: "second" }),
        request(widgetLifecycle, "shelf", "workRequest", { job: "polish" }),
        create(widgetLifecycle, "child", { facts: { size: 3 } }),
        alert(widgetLifecycle, "shelf", { source: "rack", id: "FanFailed", message: "fan 3 stands still" }),
        wake(widgetLifecycle, "sleeper"),
      ],
    },
  ]),
);
process.stdout.write(`${result?.type}\n`);
await db.close();
