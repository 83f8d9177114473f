import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { Forge } from "../../../contract/forge/forge_pb.js";
import { ErrorInfoSchema } from "../../../contract/millwright/v1/error_info_pb.js";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { LifecycleService } from "../../../contract/millwright/v1/lifecycle_pb.js";
import { PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { SystemService } from "../../../contract/millwright/v1/system_pb.js";
import { TokenService } from "../../../contract/millwright/v1/token_pb.js";
import { WatchService } from "../../../contract/millwright/v1/watch_pb.js";
import { JournalTail } from "../../../src/engine/watch.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { SharedClock } from "../../../src/kernel/time/shared-clock.ts";
import { seedWriter } from "../../../src/providers/seeds/seed.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { registerRoutes } from "../../../src/wiring/routes.ts";
import { allStores, allThings } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase } from "../../support/database.ts";
import { type ApiUnderTest, startApi } from "./api-under-test.ts";

/** Every service over real gRPC. Who calls is whoever `as` names; nobody without it. */
export interface Surface {
  readonly api: ApiUnderTest;
  readonly forge: Client<typeof Forge>;
  readonly shelves: Client<typeof PowerShelfService>;
  readonly history: Client<typeof HistoryService>;
  readonly lifecycles: Client<typeof LifecycleService>;
  readonly tokens: Client<typeof TokenService>;
  readonly system: Client<typeof SystemService>;
  readonly watch: Client<typeof WatchService>;
  readonly revoked: string[];
  /** What the server thinks of its host's clock; tests let it hear what the database's shows. */
  readonly clock: SharedClock;
  close(): Promise<void>;
}

/** What a message is made of, without those that are made already. */
export type Parts<S extends DescMessage> = Exclude<MessageInitShape<S>, { $typeName: string }>;

export const as = (user: string, role = "admin") => ({ headers: { "x-user": user, "x-role": role } });

/** Nothing is carried out here, so that there are no runs; the service of fleet nodes is whole only with them. */
const WITHOUT_RUNS = allThings.filter(({ store }) => store.lifecycle.kind !== "fleet_node");

export async function startSurface(deps: ServiceDeps): Promise<Surface> {
  const stop = new AbortController();
  const events = new JournalTail({ db: deps.db, log: silentLog });
  const listening = deps.db.listen("millwright", () => events.nudge(), stop.signal);
  const tailing = events.run(stop.signal);
  const revoked: string[] = [];
  const clock = new SharedClock();
  const system = {
    version: "1.2.3",
    commit: "0123456789abcdef",
    schema: "0001",
    startedAt: new Date("2024-01-02T03:04:05Z"),
    replica: "replica-1",
    clock,
  };
  const api = await startApi({
    authenticate: async (headers) => ({
      name: headers.get("x-user"),
      roles: [headers.get("x-role") ?? "admin"],
      address: null,
    }),
    routes: (router) =>
      registerRoutes(
        router,
        { services: deps, events, system, onTokenRevoked: (id) => revoked.push(id) },
        WITHOUT_RUNS,
      ),
  });
  const transport = api.grpc();
  return {
    api,
    forge: createClient(Forge, transport),
    shelves: createClient(PowerShelfService, transport),
    history: createClient(HistoryService, transport),
    lifecycles: createClient(LifecycleService, transport),
    tokens: createClient(TokenService, transport),
    system: createClient(SystemService, transport),
    watch: createClient(WatchService, transport),
    revoked,
    clock,
    async close() {
      await api.close();
      stop.abort();
      await Promise.all([listening, tailing]);
    },
  };
}

/** The surface on a database of its own, and nobody who carries anything out. */
export interface ForgeUnderTest extends Surface {
  readonly db: Database;
  readonly deps: ServiceDeps;
  /** A shelf on record, in the given state. */
  addShelf(id: string, state?: string): Promise<string>;
}

export async function startForge(options: { maxFindByIds?: number } = {}): Promise<ForgeUnderTest> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-forge-"));
  const database = await createTestDatabase();
  const { db } = database;
  const secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
  const deps = { db, stores: allStores, secrets, seedWriter, maxFindByIds: options.maxFindByIds ?? 100 };
  const surface = await startSurface(deps);
  let count = 0;
  return {
    ...surface,
    db,
    deps,
    async addShelf(id, state = "ready") {
      count += 1;
      const bmcMac = `02:00:00:00:${String(count >> 8).padStart(2, "0")}:${(count & 255).toString(16).padStart(2, "0")}`;
      await surface.shelves.createPowerShelf(
        { id, bmcMac, bmcEndpoint: "192.0.2.1", bmcUsername: "root", bmcPassword: "secret", rackId: "rack-1" },
        as("setup"),
      );
      await db.execute("update power_shelves set state = $2 where id = $1", [id, state]);
      return id;
    },
    async close() {
      await surface.close();
      await database.drop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Every row of every table, to compare before and after. */
export async function dumpTables(db: Database, except: readonly string[] = []): Promise<Record<string, string[]>> {
  const tables = await db.query<{ name: string }>(
    "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE' order by 1",
  );
  const dump: Record<string, string[]> = {};
  for (const { name } of tables) {
    if (except.includes(name)) continue;
    const rows = await db.query<{ row: string }>(`select to_jsonb(t)::text as row from ${name} t order by 1`);
    dump[name] = rows.map(({ row }) => row);
  }
  return dump;
}

/** Code, offending field and message of a call that must fail. */
export async function refusal(
  call: Promise<unknown>,
): Promise<{ code: ConnectError["code"]; kind: string; field: string; message: string; next: string }> {
  try {
    await call;
  } catch (error) {
    const failure = ConnectError.from(error);
    const [info] = failure.findDetails(ErrorInfoSchema);
    const { kind = "", field = "", next = "" } = info ?? {};
    return { code: failure.code, kind, field, message: failure.rawMessage, next };
  }
  throw new Error("the call succeeded");
}
