import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { WatchService } from "../../contract/millwright/v1/watch_pb.js";
import { Arrivals, idsFor } from "../watchers.ts";

/** Many watchers over a few connections; started by `watchers-over-grpc.ts`, to which it reports. */
const CONNECTIONS = 10;
const [address = "", watchersText, followAllText] = process.argv.slice(2);
const audience = { watchers: Number(watchersText), followAll: Number(followAllText) };

const clients = Array.from({ length: CONNECTIONS }, () =>
  createClient(WatchService, createGrpcTransport({ baseUrl: `http://${address}` })),
);
const arrivals = new Arrivals();
let left = audience.watchers;

async function watch(index: number): Promise<void> {
  const client = clients[index % CONNECTIONS];
  if (client === undefined) throw new Error("no client");
  for await (const { message } of client.watch({ fromNow: true, ids: idsFor(index, audience) })) {
    if (message.case === "event") arrivals.add(Number(message.value.data?.n));
    else if (left > 0 && --left === 0) process.send?.("watching"); // each begins with a bookmark
  }
}

process.on("message", (sentAt: number[]) => {
  arrivals.summarize(sentAt, audience).then(
    (summary) => process.send?.(summary),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on("disconnect", () => process.exit(0));

await Promise.all(Array.from({ length: audience.watchers }, (_, index) => watch(index)));
