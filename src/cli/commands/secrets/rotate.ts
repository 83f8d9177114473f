import { setTimeout as pause } from "node:timers/promises";
import { type SecretKey, SecretKeySchema, SecretKeyService } from "../../../../contract/millwright/v1/secret_key_pb.js";
import { CliError, EXIT } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList } from "../../terminal/printing.ts";
import { clockTime, isoTime, toDate } from "../../terminal/times.ts";

export interface RotateOptions {
  readonly key?: string;
  readonly wait?: true;
}

const LOOK_EVERY_MS = 500;
/** So long without one that was encrypted again, nobody does it. */
const PATIENCE_MS = 60_000;

function use({ current, currentSince, removableAt, holders }: SecretKey, now: Date): string {
  if (current) return "encrypts";
  if (!currentSince) return "new";
  if (holders === 0) return "in no file";
  if (!removableAt) return "decrypts";
  return toDate(removableAt) <= now ? "can be removed" : `until ${clockTime(removableAt)}`;
}

const columns = (replicas: number, now: Date): readonly Column<SecretKey>[] => [
  { title: "KEY", cell: ({ id }) => id },
  { title: "USE", cell: (key) => use(key, now) },
  { title: "SECRETS", cell: ({ secrets }) => String(secrets) },
  { title: "REPLICAS", cell: ({ holders }) => `${holders} of ${replicas}` },
  { title: "SINCE", cell: (key) => clockTime(key.currentSince), plain: (key) => isoTime(key.currentSince) },
];

export async function listKeys(session: Session): Promise<undefined> {
  const client = await session.client(SecretKeyService);
  const { keys, replicas } = await client.listSecretKeys({}, { signal: session.signal });
  const shown = columns(replicas, session.terminal.now());
  await printList(session, { items: keys, columns: shown, json: (key) => jsonOf(SecretKeySchema, key) }, "No keys.");
}

export async function rotateKey(session: Session, { key: keyId = "", wait }: RotateOptions): Promise<undefined> {
  const client = await session.client(SecretKeyService);
  const answer = await client.rotateSecretKey({ keyId }, { signal: session.signal });
  const id = answer.key?.id ?? "";
  const left = wait ? await untilEncryptedAgain(session, id, answer.secretsLeft) : answer.secretsLeft;
  const begun = answer.changed
    ? `Key ${id} encrypts from now on.`
    : `Key ${id} encrypts already; the key files hold no newer one (millwright secrets new-key adds one).`;
  const rest =
    left > 0
      ? ` ${left} secrets are still encrypted with earlier keys, and are encrypted again now.`
      : " All secrets are encrypted with it.";
  await printDone(session, `${begun}${rest}`, { key: id, changed: String(answer.changed), secrets_left: left });
}

async function untilEncryptedAgain(session: Session, id: string, atFirst: number): Promise<number> {
  const { signal, terminal } = session;
  const client = await session.client(SecretKeyService);
  let [left, fellAt] = [atFirst, terminal.now().getTime()];
  while (left > 0) {
    await pause(LOOK_EVERY_MS, undefined, { signal });
    const { keys } = await client.listSecretKeys({}, { signal });
    const now = keys.reduce((sum, key) => sum + (key.id === id ? 0 : key.secrets), 0);
    if (now < left) fellAt = terminal.now().getTime();
    else if (terminal.now().getTime() - fellAt > PATIENCE_MS) throw stuck(now);
    left = now;
  }
  return left;
}

const stuck = (secrets: number): CliError =>
  new CliError(
    EXIT.operationFailed,
    `${secrets} secrets are not encrypted again; the log of the server says why ("secrets that cannot be read")`,
  );
