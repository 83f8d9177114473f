import { runSealing } from "../../src/engine/journal-sealing.ts";
import { systemClock } from "../../src/kernel/time/clock.ts";
import { openSealKey, sealNext } from "../../src/store/lifecycle/seals/journal-seals.ts";
import { verifyAfter } from "../../src/store/lifecycle/seals/verify-seals.ts";
import { type BenchDatabase, type BenchServer, benchLog } from "../bench-server.ts";
import { createFleet } from "../fleet.ts";
import { type Measurement, median } from "../measurement.ts";

const TRANSITIONS_EACH = 3;
const TARGET_SHARE = 0.9;

/** Transitions with and without a sealer beside the controller, in turns; then how fast a journal is sealed that nobody has, and verified. */
export async function measureJournalSeals(
  server: BenchServer,
  { quick }: { readonly quick: boolean },
): Promise<Measurement[]> {
  const shelves = quick ? 4_000 : 20_000;
  const [bare, sealed, sealing, verifying] = [[], [], [], []] as number[][] as [number[], number[], number[], number[]];
  await shelvesReady(server, 2_000, false); // the first of a process is slower than the rest
  for (let repetition = 0; repetition < (quick ? 1 : 3); repetition += 1) {
    const without = await shelvesReady(server, shelves, false);
    bare.push(without.rate);
    sealing.push(without.sealing);
    verifying.push(without.verifying);
    sealed.push((await shelvesReady(server, shelves, true)).rate);
  }
  const limit = { what: "without seals", value: median(bare) };
  return [
    { what: "transitions, sealed each second", values: sealed, unit: "/s", limit, better: "higher" },
    {
      what: "  against none sealed",
      values: sealed.map((rate) => rate / limit.value),
      unit: "×",
      target: TARGET_SHARE,
      better: "higher",
    },
    { what: "entries sealed after an upgrade", values: sealing, unit: "/s", better: "higher" },
    { what: "entries verified", values: verifying, unit: "/s", better: "higher" },
  ];
}

async function shelvesReady(server: BenchServer, shelves: number, isSealed: boolean) {
  const database = await server.freshDatabase();
  const fleet = createFleet(database.db);
  const stop = new AbortController();
  const sealKey = openSealKey(database.db, fleet.secrets);
  try {
    await fleet.secrets.checkKeys(database.db);
    await fleet.addShelves(shelves);
    const options = { db: database.db, log: benchLog, clock: systemClock, sealKey, metrics: { count() {} } };
    const running = isSealed ? runSealing(options, stop.signal) : undefined;
    const took = await fleet.runUntilReady(shelves);
    stop.abort();
    await running;
    return { rate: (shelves * TRANSITIONS_EACH * 1_000) / took, ...(await sealAndVerify(database, await sealKey())) };
  } finally {
    stop.abort();
    fleet.close();
    await database.drop();
  }
}

/** What is not sealed yet. */
async function sealAndVerify({ db }: BenchDatabase, key: Buffer): Promise<{ sealing: number; verifying: number }> {
  let [entries, verified] = [0, 0];
  const begun = performance.now();
  for (let sealed = await sealNext(db, key, next()); sealed; sealed = await sealNext(db, key, next()))
    entries += sealed.entries;
  const ended = performance.now();
  for (let [after, isEnd] = [undefined as Parameters<typeof verifyAfter>[2], false]; !isEnd; ) {
    const page = await verifyAfter(db, key, after);
    if (page.problem) throw new Error(`the journal is not as it was sealed: ${page.problem.kind}`);
    verified += page.entries;
    [after, isEnd] = [page.last, page.isEnd];
  }
  const rate = (count: number, ms: number) => (count * 1_000) / ms;
  return { sealing: rate(entries, ended - begun), verifying: rate(verified, performance.now() - ended) };
}

const next = () => ({ now: new Date(), most: 5_000 });
