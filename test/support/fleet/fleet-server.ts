import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../../src/config.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import type { FleetNode } from "../../../src/lifecycles/fleet-node/fleet-node.ts";
import type { FleetTask } from "../../../src/lifecycles/fleet-task/fleet-task.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { currentEnrolment } from "../../../src/store/fleet/enrolment.ts";
import { fleetNodeStore } from "../../../src/store/fleet/nodes.ts";
import { fleetTaskStore } from "../../../src/store/fleet/tasks.ts";
import { commitOrRefuse } from "../../../src/store/lifecycle/commit/commit-or-refuse.ts";
import { create } from "../../../src/store/lifecycle/create.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { startServer } from "../../../src/wiring/server.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase } from "../database.ts";

export interface AgentAnswer<T = unknown> {
  readonly status: number;
  readonly body: T;
}

/** A server with fleet nodes that are on record, and nothing behind them: for what agents and the server have to do with each other. */
export async function startFleetServer(env: Readonly<Record<string, string>> = {}) {
  const database = await createTestDatabase();
  const { db } = database;
  const directory = mkdtempSync(join(tmpdir(), "millwright-fleet-"));
  const start = async (dataDir: string) => {
    const { config } = loadConfig({
      env: {
        MILLWRIGHT_DATABASE_URL: database.url,
        MILLWRIGHT_DATA_DIR: dataDir,
        MILLWRIGHT_SECRET_KEY_FILE: join(directory, "secret-key"),
        MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
        MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
        ...env,
      },
      argv: [],
      profile: "serve",
    });
    return startServer({ config, log: silentLog, version: "0.0.0", signal: new AbortController().signal });
  };
  const server = await start(directory);
  const secrets = openSecretStore({ keyFile: join(directory, "secret-key") });
  await db.execute(`insert into fleet_sites (name, url, created_by) values ('lab', 'http://192.0.2.1/MAAS', 'test')`);
  let count = 0;

  const nodeOf = async (id: string): Promise<FleetNode> => {
    const [node] = (await fleetNodeStore.load(db, [id])).things;
    if (!node) throw new Error(`there is no node ${id}`);
    return node;
  };
  const taskOf = async (id: string): Promise<FleetTask> => {
    const [task] = (await fleetTaskStore.load(db, [id])).things;
    if (!task) throw new Error(`there is no task ${id}`);
    return task;
  };

  /** A token that the node can enrol with; each call makes another one, unless the last was not used. */
  const issue = async (nodeId: string, ttl = minutes(60)): Promise<string> => {
    const node = await nodeOf(nodeId);
    const { enrollment: before } = node.facts;
    const { token, enrollment } = currentEnrolment(secrets, { nodeId, enrollment: before, ttl, now: new Date() });
    await db.transaction(async (tx) => {
      await lockThings(tx, [{ kind: "fleet_node", id: nodeId }]);
      await commitOrRefuse(tx, allStores, [
        { kind: "fleet_node", thing: await nodeOf(nodeId), facts: { enrollment }, actor: "test" },
      ]);
    });
    return token;
  };

  const call = async <T>(
    method: string,
    path: string,
    options: {
      readonly bearer?: string;
      readonly body?: unknown;
      readonly signal?: AbortSignal;
      readonly url?: string;
    } = {},
  ): Promise<AgentAnswer<T>> => {
    const { bearer, body, signal, url = server.httpUrl } = options;
    const response = await fetch(`${url}/internal/v1/nodes/${path}`, {
      method,
      headers: {
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
    const text = await response.text();
    return { status: response.status, body: (text === "" ? undefined : JSON.parse(text)) as T };
  };

  return {
    ...{ db, server, database, directory, secrets, nodeOf, taskOf, issue, call },
    /** Another replica on the same database. */
    startReplica: () => start(join(directory, `replica-${++count}`)),
    async makeNode(state = "enrolling"): Promise<string> {
      const id = `fn-${randomBytes(6).toString("hex")}`;
      await db.transaction(async (tx) => {
        await lockThings(tx, [{ kind: "fleet_node", id }]);
        await create(tx, fleetNodeStore as never, {
          id,
          state: "enrolling",
          actor: "test",
          row: {
            ...{ site: "lab", profile: "h100", sku: "gpu8", hostname: id, mode: "maas", machine_id: `m-${id}` },
            ...{ request_id: id, fingerprint: "", created_by: "test" },
          },
        });
      });
      if (state !== "enrolling") await db.execute("update fleet_nodes set state = $2 where id = $1", [id, state]);
      return id;
    },
    /** Puts a task into the node's queue. */
    async makeTask(
      nodeId: string,
      more: { readonly type?: string; readonly params?: JsonObject; readonly ttl?: number } = {},
    ) {
      const id = `ft-${randomBytes(8).toString("hex")}`;
      const { type: task_type = "node.drain", params = {}, ttl = minutes(15) } = more;
      const expires_at = new Date(Date.now() + ttl).toISOString();
      await db.transaction(async (tx) => {
        await lockThings(tx, [{ kind: "fleet_task", id }]);
        const row = { node_id: nodeId, task_type, params, expires_at };
        await create(tx, fleetTaskStore as never, { id, actor: "test", row });
      });
      return id;
    },
    /** Enrols the node, and answers with the bearer token of its agent. */
    async enrol(nodeId: string): Promise<string> {
      const token = await issue(nodeId);
      const nonce = randomBytes(16).toString("hex");
      const { status, body } = await call<{ bearer: string }>("POST", `${nodeId}/enroll`, { body: { token, nonce } });
      if (status !== 200) throw new Error(`the enrolment of ${nodeId} was answered with ${status}`);
      return body.bearer;
    },
    async close() {
      await server.stop();
      await database.drop();
      rmSync(directory, { recursive: true });
    },
  };
}
export type FleetServer = Awaited<ReturnType<typeof startFleetServer>>;
