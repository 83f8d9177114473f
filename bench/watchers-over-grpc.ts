import { fork } from "node:child_process";
import { once } from "node:events";
import { createCallFrame } from "../src/api/transport/interceptors.ts";
import { startApiServers } from "../src/api/transport/server.ts";
import { SharedClock } from "../src/kernel/time/shared-clock.ts";
import { registerRoutes } from "../src/wiring/routes.ts";
import { allStores } from "../src/wiring/things/all-things.ts";
import { benchLog } from "./bench-server.ts";
import type { ArrivalSummary, WatcherSetting, Watchers } from "./watchers.ts";

const loopback = { host: "127.0.0.1", port: 0 };

/** The server's streams in this process, with all that every call passes through; the clients in a process of their own. */
export async function startWatchersOverGrpc({
  db,
  fleet,
  tail,
  watchers,
  followAll,
}: WatcherSetting): Promise<Watchers> {
  const api = await startApiServers({
    grpcListen: loopback,
    httpListen: loopback,
    ...createCallFrame({
      log: benchLog,
      authenticate: async (_headers, peer) => ({ name: "bench", roles: ["admin"], address: peer.address }),
    }),
    routes: (router) =>
      registerRoutes(router, {
        services: { db, stores: allStores, secrets: fleet.secrets, maxFindByIds: 100 },
        events: tail,
        system: {
          version: "bench",
          commit: "",
          schema: "",
          startedAt: new Date(),
          replica: "bench",
          clock: new SharedClock(),
        },
        onTokenRevoked() {},
      }),
    http() {},
    log: benchLog,
  });
  const script = new URL("clients/watch-clients.ts", import.meta.url);
  const clients = fork(script, [api.grpcAddress, String(watchers), String(followAll)], { serialization: "advanced" });
  const answer = async <T>(): Promise<T> => {
    const [message] = (await Promise.race([
      once(clients, "message"),
      once(clients, "exit").then(([code]) => Promise.reject(new Error(`the clients ended with ${code}`))),
    ])) as [T];
    return message;
  };
  await answer<"watching">();
  return {
    async arrivals(sentAt) {
      const answered = answer<ArrivalSummary | { error: string }>();
      clients.send(sentAt);
      const result = await answered;
      if ("error" in result) throw new Error(result.error);
      return result;
    },
    async stop() {
      const ended = once(clients, "exit");
      clients.disconnect();
      await ended;
      await api.close();
    },
  };
}
