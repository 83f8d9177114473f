import { createPublicKey, verify } from "node:crypto";

/** What an agent does at all. Every other word is refused, and nothing happens. */
export const TASK_TYPES = [
  "node.drain",
  "node.cleanup_storage",
  "node.scrub_gpu",
  "node.validate_clean",
  "node.uninstall",
  "diag.health_probe",
] as const;
export type TaskType = (typeof TASK_TYPES)[number];

export interface TrustedTask {
  readonly id: string;
  readonly type: TaskType;
  readonly params: Readonly<Record<string, unknown>>;
}

interface Offered {
  readonly signed: string;
  readonly signature: string;
}

interface Circumstances {
  readonly node: string;
  /** PEM, as enrolment told it. */
  readonly publicKey: string;
  readonly now: Date;
  /** A task is begun once: what was signed for it is worth nothing after that. */
  readonly wasBegun: (taskId: string) => boolean;
}

/** The task, if it is the server's own, for this node, in time and not begun before; else why it is refused. What is not signed is not read. */
export function trustTask(
  { signed, signature }: Offered,
  { node, publicKey, now, wasBegun }: Circumstances,
): TrustedTask | { readonly refused: string } {
  if (!isSigned(signed, signature, publicKey)) return { refused: "its signature is not the server's" };
  const task = JSON.parse(signed) as Readonly<Record<string, unknown>>;
  const { task_id: id, node_id, task_type: type, params = {}, expires_at } = task;
  if (typeof id !== "string" || node_id !== node) return { refused: `it is for node ${String(node_id)}` };
  if (typeof expires_at !== "string" || !(Date.parse(expires_at) > now.getTime()))
    return { refused: `it expired at ${String(expires_at)}` };
  if (!TASK_TYPES.some((known) => known === type))
    return { refused: `${String(type)} is nothing that this agent does` };
  if (wasBegun(id)) return { refused: "it was begun before" };
  return { id, type: type as TaskType, params: params as TrustedTask["params"] };
}

function isSigned(signed: string, signature: string, publicKey: string): boolean {
  try {
    return verify(null, Buffer.from(signed), createPublicKey(publicKey), Buffer.from(signature, "base64"));
  } catch {
    return false;
  }
}
