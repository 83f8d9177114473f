import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { FleetTask } from "../../../lifecycles/fleet-task/fleet-task.ts";
import type { SecretStore } from "../../../store/access/secrets.ts";
import { readSigningKey } from "../../../store/fleet/agents.ts";
import type { Database } from "../../../store/postgres/database.ts";

/** A task as it travels: an agent believes what is signed, and nothing beside it. */
export interface SignedTask {
  readonly taskId: string;
  readonly taskType: string;
  readonly params: FleetTask["params"];
  /** Until when it may be begun. */
  readonly expiresAt: string;
  /** JSON, exactly as it was signed. */
  readonly signed: string;
  /** Ed25519 over the bytes of that text, base64. */
  readonly signature: string;
}

export interface TaskSigner {
  /** In PEM (SPKI): what agents check signatures with. */
  publicKey(): Promise<string>;
  sign(task: Pick<FleetTask, "id" | "nodeId" | "taskType" | "params">, expiresAt: Date): Promise<SignedTask>;
}

/** All replicas sign with one key, which the first of them makes. It is read once. */
export function createTaskSigner(deps: { readonly db: Database; readonly secrets: SecretStore }): TaskSigner {
  let key: Promise<KeyObject> | undefined;
  function privateKey(): Promise<KeyObject> {
    key ??= readSigningKey(deps.db, deps.secrets, makeKey).then(createPrivateKey);
    key.catch(() => {
      key = undefined; // a database that is away is back later
    });
    return key;
  }
  return {
    async publicKey() {
      return createPublicKey(await privateKey())
        .export({ type: "spki", format: "pem" })
        .toString();
    },
    async sign({ id, nodeId, taskType, params }, expiresAt) {
      const task = { task_id: id, node_id: nodeId, task_type: taskType, params, expires_at: expiresAt.toISOString() };
      const signed = JSON.stringify(task);
      const signature = sign(null, Buffer.from(signed), await privateKey()).toString("base64");
      return { taskId: id, taskType, params, expiresAt: task.expires_at, signed, signature };
    },
  };
}

const makeKey = (): string =>
  generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
