import { createHmac } from "node:crypto";
import type { SignInAttempt, SignInRejections, SignInRule } from "../../capabilities/sign-in-ledger.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import type { Database, Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import type { SecretStore } from "./secrets.ts";
import { siteKey } from "./site-key.ts";

/** Stands for endpoint and credentials wherever they must be known again but not kept. */
export type SignInDigest = (attempt: SignInAttempt) => Buffer;

const KEY_NAME = "sign-in-ledger/key";

/** The key is one for all replicas, made by the first that needs it; it lies encrypted among the secrets. */
export async function openSignInDigest(db: Database, secrets: SecretStore): Promise<SignInDigest> {
  const key = await siteKey(db, secrets, KEY_NAME);
  return ({ endpoint, username, password }) =>
    createHmac("sha256", key)
      .update(JSON.stringify([endpoint, username, password]))
      .digest();
}

interface LedgerRow {
  readonly endpoint: string;
  readonly digest: Buffer;
  readonly rejections: number;
  readonly rejected_since: Date;
  readonly rest_ms: number;
}

// The time that is left is worked out by the database: the clocks of replicas differ.
const COLUMNS = `l.endpoint, l.digest, l.rejections, l.rejected_since,
  greatest(0, extract(epoch from l.rejected_until - now()) * 1000)::float8 as rest_ms`;

const parseRow = ({ rejections, rejected_since, rest_ms }: LedgerRow): SignInRejections => ({
  count: rejections,
  since: rejected_since,
  rest: milliseconds(rest_ms),
});

/** One query for many attempts, answered in their order. */
export async function findRejections(
  db: Queryable,
  digestOf: SignInDigest,
  attempts: readonly SignInAttempt[],
): Promise<(SignInRejections | undefined)[]> {
  const digests = attempts.map(digestOf);
  const rows = await db.query<LedgerRow>({
    name: "sign-in-ledger-find",
    text: `select ${COLUMNS} from sign_in_ledger l
             join unnest($1::text[], $2::bytea[]) as a(endpoint, digest) using (endpoint, digest)`,
    values: [attempts.map(({ endpoint }) => endpoint), digests],
  });
  const found = new Map(rows.map((row) => [row.digest.toString("hex"), parseRow(row)]));
  return digests.map((digest) => found.get(digest.toString("hex")));
}

/** Adds one; what this BMC rejected long ago is forgotten on the way. */
export async function noteRejected(
  db: Queryable,
  digestOf: SignInDigest,
  attempt: SignInAttempt,
  { rejectionsToStop, coolDown }: SignInRule,
): Promise<SignInRejections> {
  const [row] = await db.query<LedgerRow>(
    `with forgotten as (
       delete from sign_in_ledger where endpoint = $1 and digest <> $2 and rejected_until < now() - interval '30 days'),
     noted as (
       insert into sign_in_ledger as l (endpoint, digest, rejections, rejected_until)
       values ($1, $2, 1, now() + case when $3 <= 1 then $4 else 0 end * interval '1 ms')
       on conflict (endpoint, digest) do update set
         rejections = l.rejections + 1,
         rejected_until = now() + case when l.rejections + 1 >= $3 then $4 else 0 end * interval '1 ms'
       returning *)
     select ${COLUMNS} from noted l`,
    [attempt.endpoint, digestOf(attempt), rejectionsToStop, coolDown],
  );
  failPoint("sign-in-ledger:noted");
  if (row === undefined) throw new Error("the ledger of sign-ins took no note of a rejection");
  return parseRow(row);
}

/**
 * Somebody has just given credentials for these BMCs: they are tried now, also when they are the ones that were rejected before,
 * since the account may have been put right. One more rejection stops them again, as after a cool-down.
 */
export async function liftSignInStop(tx: Transaction, endpoints: readonly string[]): Promise<void> {
  if (endpoints.length === 0) return;
  await tx.execute(
    "update sign_in_ledger set rejected_until = now() where endpoint = any($1) and rejected_until > now()",
    [endpoints],
  );
  failPoint("sign-in-ledger:lifted");
}

export async function noteAccepted(db: Queryable, digestOf: SignInDigest, attempt: SignInAttempt): Promise<void> {
  await db.execute("delete from sign_in_ledger where endpoint = $1 and digest = $2", [
    attempt.endpoint,
    digestOf(attempt),
  ]);
}
