import { createCallFrame } from "../src/api/transport/interceptors.ts";
import { startApiServers } from "../src/api/transport/server.ts";
import { Controller } from "../src/engine/controller.ts";
import { type EngineObserver, unobserved } from "../src/engine/observer.ts";
import { JournalTail } from "../src/engine/watch.ts";
import { hours } from "../src/kernel/time/duration.ts";
import { SharedClock } from "../src/kernel/time/shared-clock.ts";
import { allSteps } from "../src/runs/steps/index.ts";
import type { ServiceDeps } from "../src/services/call/deps.ts";
import { wireHandlers } from "../src/wiring/handlers.ts";
import type { MachineHardware } from "../src/wiring/machine-hardware.ts";
import { registerRoutes } from "../src/wiring/routes.ts";
import { type RunParts, wireRunParts } from "../src/wiring/run-deps.ts";
import { loadRunbooks } from "../src/wiring/runbook-files.ts";
import { benchLog } from "./bench-server.ts";
import { createInstantHardware } from "./instant-hardware.ts";

export interface RunService {
  readonly grpcAddress: string;
  readonly events: JournalTail;
  stop(): Promise<void>;
}

const loopback = { host: "127.0.0.1", port: 0 };

/** What a server is made of, with all that every call and every pass passes through, and hardware that is given. */
export async function startRunService(
  deps: ServiceDeps,
  hardware: MachineHardware,
  { observer = {}, instance = "bench" }: { observer?: Partial<EngineObserver>; instance?: string } = {},
): Promise<RunService> {
  const { db, stores, secrets } = deps;
  const stop = new AbortController();
  const events = new JournalTail({ db, log: benchLog });
  const runbooks = loadRunbooks();
  const starting: RunParts = {
    ...wireRunParts({ db, secrets, hardware, steps: allSteps, runbooks, seedsAt: null }),
    clusterProbes: null,
  };
  const controller = new Controller({
    db,
    stores,
    log: benchLog,
    owner: instance,
    handlers: wireHandlers({
      db,
      secrets,
      provider: createInstantHardware().provider,
      monitorEvery: hours(1),
      exploreEvery: hours(1),
      runs: { hardware, steps: allSteps, runbooks, starting, instance },
    }),
    observer: { ...unobserved, ...observer },
  });
  const nudgeAll = () => {
    controller.nudge();
    events.nudge();
  };
  await db.listen("millwright", nudgeAll, stop.signal);
  const loops = [controller.run(stop.signal), events.run(stop.signal)];
  const api = await startApiServers({
    grpcListen: loopback,
    httpListen: loopback,
    ...createCallFrame({
      log: benchLog,
      authenticate: async (_headers, peer) => ({ name: "bench", roles: ["admin"], address: peer.address }),
    }),
    routes: (router) =>
      registerRoutes(router, {
        services: deps,
        runs: starting,
        events,
        system: {
          version: "bench",
          commit: "",
          schema: "",
          startedAt: new Date(),
          replica: instance,
          clock: new SharedClock(),
        },
        onTokenRevoked() {},
      }),
    http() {},
    log: benchLog,
  });
  return {
    grpcAddress: api.grpcAddress,
    events,
    async stop() {
      await api.close();
      stop.abort();
      await Promise.all(loops);
    },
  };
}
