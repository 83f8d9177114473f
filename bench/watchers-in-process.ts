import { Arrivals, idsFor, type WatcherSetting, type Watchers } from "./watchers.ts";

export async function startWatchersInProcess(setting: WatcherSetting): Promise<Watchers> {
  const { tail, watchers } = setting;
  const stop = new AbortController();
  const arrivals = new Arrivals();
  const ready = Promise.withResolvers<void>();
  let left = watchers;
  const watching = Array.from({ length: watchers }, async (_, index) => {
    for await (const item of tail.follow("now", { ids: idsFor(index, setting) }, stop.signal)) {
      if (item.type === "event") arrivals.add(Number(item.row.data.n));
      else if (left > 0 && --left === 0) ready.resolve(); // each begins with a bookmark
    }
  });
  await ready.promise;
  return {
    arrivals: (sentAt) => arrivals.summarize(sentAt, setting),
    async stop() {
      stop.abort();
      await Promise.all(watching);
    },
  };
}
