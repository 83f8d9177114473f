import { setTimeout as pause } from "node:timers/promises";
import { JournalTail } from "../src/engine/watch.ts";
import { recordChange } from "../src/store/lifecycle/changes.ts";
import { lockThings } from "../src/store/lifecycle/locks.ts";
import { storeOf } from "../src/store/lifecycle/things.ts";
import type { Database } from "../src/store/postgres/database.ts";
import { allStores } from "../src/wiring/things/all-things.ts";
import { type BenchServer, benchLog } from "./bench-server.ts";
import { createFleet } from "./fleet.ts";
import { bareNotify } from "./limits/bare-notify.ts";
import type { Measurement } from "./measurement.ts";
import {
  type ArrivalSummary,
  type Audience,
  sharedNow,
  shelfOf,
  type WatcherSetting,
  type Watchers,
} from "./watchers.ts";
import { startWatchersInProcess } from "./watchers-in-process.ts";
import { startWatchersOverGrpc } from "./watchers-over-grpc.ts";

const WATCHERS = 1_000;
const CONSOLES = 10;
const EVENTS_PER_SECOND = 50;
const TARGET_P99 = 50;
/** Events before those that count: watchers that have just come read the journal themselves, until they have caught up. */
const WARM_UP = 50;

const everybodyAll: Audience = { watchers: WATCHERS, followAll: WATCHERS };
const mostlyOwn: Audience = { watchers: WATCHERS, followAll: CONSOLES };

/** From the moment that a COMMIT is sent until its event is in the hands of the watchers that want it. */
export async function measureEvents(server: BenchServer, { quick }: { quick: boolean }): Promise<Measurement[]> {
  const database = await server.freshDatabase();
  const { db } = database;
  const fleet = createFleet(db);
  const stop = new AbortController();
  const tail = new JournalTail({ db, log: benchLog });
  const repetitions = quick ? 1 : 3;
  const events = EVENTS_PER_SECOND * (quick ? 3 : 10);
  try {
    await fleet.addShelves(WATCHERS);
    const bare = await bareNotify(db, quick ? 100 : 400);
    await db.listen("millwright", () => tail.nudge(), stop.signal);
    const running = tail.run(stop.signal);
    const observe = async (
      start: (setting: WatcherSetting) => Promise<Watchers>,
      audience: Audience,
      count: number,
    ) => {
      const watchers = await start({ db, fleet, tail, ...audience });
      const summary = await watchers.arrivals(await writeEvents(db, count));
      await watchers.stop();
      return summary;
    };
    const repeat = async (once: () => Promise<ArrivalSummary>): Promise<ArrivalSummary[]> => {
      const summaries: ArrivalSummary[] = [];
      for (let repetition = 0; repetition < repetitions; repetition += 1) summaries.push(await once());
      return summaries;
    };
    const inProcess = await repeat(() => observe(startWatchersInProcess, everybodyAll, events));
    const overGrpc = await repeat(() => observe(startWatchersOverGrpc, mostlyOwn, events));
    const flood = await observe(startWatchersOverGrpc, everybodyAll, EVENTS_PER_SECOND);
    stop.abort();
    await running;
    const p99 = { unit: "ms", target: TARGET_P99, better: "lower" } as const;
    const limit = { what: "commit → NOTIFY heard", value: bare.p99 };
    return [
      {
        ...p99,
        limit,
        what: `commit → event, 1,000 watchers in process, all follow all, p99`,
        values: inProcess.map((summary) => summary.p99),
      },
      {
        ...p99,
        limit,
        what: `commit → event, 1,000 watchers over gRPC, ${CONSOLES} follow all, p99`,
        values: overGrpc.map((summary) => summary.p99),
      },
      {
        what: "deliveries over gRPC when all 1,000 follow all",
        values: [flood.deliveriesPerSecond],
        unit: "/s",
        better: "higher",
      },
    ];
  } finally {
    stop.abort();
    fleet.close();
    await database.drop();
  }
}

/** Steadily, whatever each one takes; returns when the COMMIT of each was sent. Event `n` carries its number. */
async function writeEvents(db: Database, count: number): Promise<number[]> {
  const sentAt: number[] = [];
  const writing: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let n = -WARM_UP; n < count; n += 1) {
    await pause(Math.max(0, startedAt + ((n + WARM_UP) * 1_000) / EVENTS_PER_SECOND - performance.now()));
    writing.push(
      db.transaction(async (tx) => {
        const id = shelfOf(Math.max(0, n) % WATCHERS);
        await lockThings(tx, [{ kind: "power_shelf", id }]);
        await recordChange(tx, storeOf(allStores, "power_shelf"), {
          id,
          type: "metadata_changed",
          actor: "bench",
          data: { n, name: `shelf ${n}`, labels: { site: "bench" } },
          set: { name: `shelf ${n}` },
        });
        if (n >= 0) sentAt[n] = sharedNow();
      }),
    );
  }
  await Promise.all(writing);
  return sentAt;
}
