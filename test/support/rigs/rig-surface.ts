import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { JournalTail } from "../../../src/engine/watch.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { SharedClock } from "../../../src/kernel/time/shared-clock.ts";
import type { AnyStep } from "../../../src/runs/model/step.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import type { ThingStores } from "../../../src/store/lifecycle/things.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { registerRoutes } from "../../../src/wiring/routes.ts";
import { startApi } from "../../integration/api/api-under-test.ts";
import { createTestDatabase } from "../database.ts";

/** The API over rigs or bays, on a database of its own. Whoever carries runs out is started apart. */
export interface RigSurface {
  readonly db: Database;
  readonly deps: ServiceDeps;
  readonly transport: Transport;
  readonly httpUrl: string;
  client<S extends DescService>(service: S): Client<S>;
  close(): Promise<void>;
}

export async function startRigSurface({
  stores,
  steps,
}: {
  readonly stores: ThingStores;
  readonly steps: ReadonlyMap<string, AnyStep>;
}): Promise<RigSurface> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-rigs-"));
  const { db, drop } = await createTestDatabase();
  const secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
  const deps: ServiceDeps = { db, stores, secrets, maxFindByIds: 100 };
  const stop = new AbortController();
  const events = new JournalTail({ db, log: silentLog });
  const loops = [db.listen("millwright", () => events.nudge(), stop.signal), events.run(stop.signal)];
  const unused = { runbooks: undefined as never, capabilitiesOf: () => new Set<never>() };
  const api = await startApi({
    routes: (router) =>
      registerRoutes(router, {
        services: deps,
        runs: { ...unused, steps, clusterProbes: null, takesSeeds: () => true, seedsAt: null },
        events,
        system: {
          version: "1.2.3",
          commit: "",
          schema: "",
          startedAt: new Date(),
          replica: "bench",
          clock: new SharedClock(),
        },
        onTokenRevoked() {},
      }),
  });
  const transport = api.grpc();
  return {
    db,
    deps,
    transport,
    httpUrl: api.httpUrl,
    client: (service) => createClient(service, transport),
    async close() {
      await api.close();
      stop.abort();
      await Promise.all(loops);
      await drop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
