import pg from "pg";
import type { BenchDatabase } from "../bench-server.ts";

const CONNECTIONS = [4, 8, 16, 32];

/**
 * Transitions per second with one transaction each, the way a straightforward controller writes them: state, history,
 * wake-up, NOTIFY, durable commit. The best of several numbers of connections; nothing is loaded, decided or checked.
 */
export async function oneTransactionEach({ config, db }: BenchDatabase, milliseconds: number): Promise<number> {
  const [row] = await db.query<{ count: number }>("select count(*)::int as count from power_shelves");
  const shelves = row?.count ?? 0;
  let best = 0;
  for (const connections of CONNECTIONS) {
    best = Math.max(best, await rateWith(config, connections, shelves, milliseconds));
  }
  return best;
}

async function rateWith(
  config: BenchDatabase["config"],
  connections: number,
  shelves: number,
  milliseconds: number,
): Promise<number> {
  const clients = Array.from({ length: connections }, () => new pg.Client(config));
  await Promise.all(clients.map((client) => client.connect()));
  const startedAt = performance.now();
  const until = startedAt + milliseconds;
  const counts = await Promise.all(clients.map((client) => transitUntil(client, until, shelves)));
  const took = performance.now() - startedAt;
  await Promise.all(clients.map((client) => client.end()));
  return (counts.reduce((sum, count) => sum + count, 0) * 1_000) / took;
}

/** All statements of a transaction in one message: the fewest round trips that there can be. */
async function transitUntil(client: pg.Client, until: number, shelves: number): Promise<number> {
  let count = 0;
  while (performance.now() < until) {
    const id = `ps-${1 + Math.floor(Math.random() * shelves)}`;
    await client.query(
      `begin;
       update power_shelves set state = 'ready', state_data = '{}', state_version = state_version + 1, state_since = now(),
              version = version + 1 where id = '${id}';
       insert into journal (epoch, kind, id, version, type, from_state, to_state, owner, actor, reason, data)
       values (1, 'power_shelf', '${id}', 2, 'transition', 'configuring', 'ready', 'handler', 'handler of configuring',
               'configured', '{"trigger": "configured", "state": {}, "state_version": 4}');
       update work set wake_at = now() + interval '1 hour', lease_until = null where kind = 'power_shelf' and id = '${id}';
       select pg_notify('millwright', '');
       commit`,
    );
    count += 1;
  }
  return count;
}
