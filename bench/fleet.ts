import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Controller } from "../src/engine/controller.ts";
import { type EngineObserver, unobserved } from "../src/engine/observer.ts";
import { hours } from "../src/kernel/time/duration.ts";
import { openSecretStore, type SecretStore } from "../src/store/access/secrets.ts";
import type { Database, Queryable, Transaction } from "../src/store/postgres/database.ts";
import { wireHandlers } from "../src/wiring/handlers.ts";
import { allStores } from "../src/wiring/things/all-things.ts";
import { benchLog } from "./bench-server.ts";
import { createInstantHardware, type InstantHardware } from "./instant-hardware.ts";

export interface Fleet {
  readonly hardware: InstantHardware;
  readonly secrets: SecretStore;
  /** Puts shelves on record as just created, without waking a controller. Their ids are `ps-1` … `ps-<count>`. */
  addShelves(count: number): Promise<void>;
  /** Runs one controller until all shelves are ready; returns the milliseconds that it took. */
  runUntilReady(count: number): Promise<number>;
  /** Starts one controller that goes on until it is stopped. */
  startController(observer?: Partial<EngineObserver>): Promise<{ stop(): Promise<void> }>;
  close(): void;
}

/** Each shelf has a BMC address of its own, from which the number can be read back. */
export const addressOf = (shelf: number): string => `10.${shelf >> 16}.${(shelf >> 8) & 255}.${shelf & 255}`;
const macOf = (shelf: number): string =>
  `02:00:${[24, 16, 8, 0].map((shift) => ((shelf >>> shift) & 255).toString(16).padStart(2, "0")).join(":")}`;

export function createFleet(db: Database): Fleet {
  const directory = mkdtempSync(join(tmpdir(), "millwright-bench-keys-"));
  const secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
  const hardware = createInstantHardware();

  async function startController(observer: Partial<EngineObserver> = {}) {
    const stop = new AbortController();
    const controller = new Controller({
      db,
      stores: allStores,
      log: benchLog,
      // Monitoring is out of the picture: a shelf is looked at once when it becomes ready, and then only when asked to.
      handlers: wireHandlers({
        db,
        secrets,
        provider: hardware.provider,
        monitorEvery: hours(1),
        exploreEvery: hours(1),
      }),
      observer: { ...unobserved, ...observer },
    });
    await db.listen("millwright", () => controller.nudge(), stop.signal);
    const running = controller.run(stop.signal);
    return {
      async stop() {
        stop.abort();
        await running;
      },
    };
  }

  return {
    hardware,
    secrets,
    startController,
    addShelves: (count) => addShelves(db, secrets, count),
    async runUntilReady(count) {
      const done = Promise.withResolvers<number>();
      let left = count;
      const startedAt = performance.now();
      const controller = await startController({
        moved({ to }) {
          if (to !== "ready") return;
          left -= 1;
          if (left === 0) done.resolve(performance.now() - startedAt);
        },
      });
      const took = await done.promise;
      await controller.stop();
      return took;
    },
    close: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** In no rack: racks are not worked on here, and each of their wake-ups would stay due and be read again by every claim. */
async function addShelves(db: Database, secrets: SecretStore, count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  await db.transaction(async (tx) => {
    await tx.query(
      `insert into power_shelves (id, name, rack_id, bmc_mac, bmc_address, bmc_port, state)
       select 'ps-' || n, 'shelf ' || n, null, mac, address, 443, 'initializing'
         from unnest($1::int[], $2::text[], $3::text[]) as t(n, mac, address)`,
      [numbers, numbers.map(macOf), numbers.map(addressOf)],
    );
    await putCredentials(tx, secrets, numbers.map(macOf));
    await tx.query(
      `insert into journal (epoch, kind, id, version, type, to_state, actor)
       select e.epoch, 'power_shelf', 'ps-' || n, 1, 'created', 'initializing', 'bench'
         from journal_epoch e cross join generate_series(1, $1::int) as n`,
      [count],
    );
    await tx.query(
      "insert into work (kind, id) select 'power_shelf', 'ps-' || n from generate_series(1, $1::int) as n",
      [count],
    );
  });
}

/** The secret store writes one at a time; its statements are collected here, and sent as one. */
async function putCredentials(tx: Queryable, secrets: SecretStore, macs: readonly string[]): Promise<void> {
  const rows: (readonly unknown[])[] = [];
  const collector: Transaction = {
    insideTransaction: true,
    logWhenCommitted() {},
    notifyWhenCommitted() {},
    query: (statement, values) => tx.query(statement, values), // which key encrypts
    async execute(_statement, values = []) {
      rows.push(values);
      return 1;
    },
  };
  // Bound to nothing, as those of an earlier version: they are for the address on record.
  for (const mac of macs)
    await secrets.put(collector, `bmc/${mac}`, JSON.stringify({ username: "root", password: "instant" }));
  await tx.query(
    `insert into secrets (name, key_id, nonce, ciphertext)
     select * from unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[])`,
    [0, 1, 2, 3].map((column) => rows.map((row) => row[column])),
  );
}
