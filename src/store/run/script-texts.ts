import { type Duration, hours, milliseconds } from "../../kernel/time/duration.ts";
import { ACTIVE_RUN_PHASES } from "../../runs/model/run.ts";
import { digestOf, type Runbook, type RunbookOrigin } from "../../runs/steps/scripts/runbooks.ts";
import type { Queryable, Session, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

/** One version of a script. */
export interface ScriptVersion {
  readonly ref: string;
  readonly digest: string;
}

/** Versions that this process has read from files. */
export type KnownScripts = (version: ScriptVersion) => Runbook | undefined;

/** Within this, the use of a text is not written again: most starts only read. */
const NOTED_FOR = "interval '1 day'";
/** Longer than a use may go unnoted, so that no text is removed while a start relies on it. */
const KEPT_AT_LEAST: Duration = hours(48);

const columnsOf = (versions: readonly ScriptVersion[]) => [
  versions.map(({ ref }) => ref),
  versions.map(({ digest }) => digest),
];

/** By one order for all, so that two starts never wait for each other. */
const inOrder = (a: ScriptVersion, b: ScriptVersion): number => (nameOf(a) < nameOf(b) ? -1 : 1);
const nameOf = ({ ref, digest }: ScriptVersion): string => `${ref} ${digest}`;

/**
 * Keeps the texts of scripts for the runs that the transaction creates. What neither the process nor the database has is left out: the step
 * then says so.
 */
export async function keepScripts(
  tx: Transaction,
  wanted: readonly ScriptVersion[],
  known: KnownScripts,
): Promise<void> {
  const versions = [...new Map(wanted.map((version) => [nameOf(version), version])).values()].sort(inOrder);
  if (versions.length === 0) return;
  const noted = await tx.query<Omit<Runbook, "text">>({
    hot: true,
    text: `select s.ref, s.digest, s.origin from script_texts s join unnest($1::text[], $2::text[]) as w(ref, digest) using (ref, digest)
            where s.used_at > now() - ${NOTED_FOR}`,
    values: columnsOf(versions),
  });
  const origins = new Map(noted.map((one) => [nameOf(one), one.origin]));
  const toNote = versions.filter((version) => {
    const origin = origins.get(nameOf(version));
    return origin === undefined || origin !== (known(version)?.origin ?? origin);
  });
  if (toNote.length > 0) await noteUse(tx, toNote, known);
}

async function noteUse(tx: Transaction, versions: readonly ScriptVersion[], known: KnownScripts): Promise<void> {
  for (const version of versions) {
    const runbook = known(version);
    if (runbook) await put(tx, runbook);
    else
      await tx.execute("update script_texts set used_at = now() where ref = $1 and digest = $2", [
        version.ref,
        version.digest,
      ]);
  }
  failPoint("script-texts:kept");
}

const put = (tx: Transaction, { ref, digest, origin, text }: Runbook): Promise<number> =>
  tx.execute(
    `insert into script_texts (ref, digest, origin, content) values ($1, $2, $3, $4)
     on conflict (ref, digest) do update set used_at = now(), origin = excluded.origin`,
    [ref, digest, origin, Buffer.from(text, "utf8")],
  );

/** For runs that were started before texts were kept: as long as this version still has their scripts. */
export async function keepScriptsOfActiveRuns(db: Session, known: KnownScripts): Promise<number> {
  const missing = await db.query<ScriptVersion>(
    `select distinct f.key as ref, f.value as digest from runs r cross join jsonb_each_text(r.facts -> 'scripts') f
      where r.state = any($1) and not exists (select from script_texts s where s.ref = f.key and s.digest = f.value)`,
    [ACTIVE_RUN_PHASES],
  );
  const found = missing.filter((version) => known(version) !== undefined);
  if (found.length > 0) await db.transaction((tx) => keepScripts(tx, found, known));
  return found.length;
}

/** In the order of the versions; undefined where it is not kept, or is not what its digest says. */
export async function findScripts(db: Queryable, versions: readonly ScriptVersion[]): Promise<(Runbook | undefined)[]> {
  const rows = await db.query<ScriptVersion & { origin: RunbookOrigin; content: Buffer }>(
    "select ref, digest, origin, content from script_texts join unnest($1::text[], $2::text[]) as w(ref, digest) using (ref, digest)",
    columnsOf(versions),
  );
  const found = new Map(rows.map(({ content, ...row }) => [nameOf(row), { ...row, text: content.toString("utf8") }]));
  return versions.map((version) => {
    const runbook = found.get(nameOf(version));
    return runbook && digestOf(runbook.text) === version.digest ? runbook : undefined;
  });
}

/** Removes texts that no run was started with for so long, unless a run that goes on, or ended since, has it. */
export async function forgetScripts(db: Queryable, retention: Duration, most: number): Promise<number> {
  const removed = await db.query(
    `delete from script_texts s where (s.ref, s.digest) in (
       select t.ref, t.digest from script_texts t where t.used_at < now() - $2 * interval '1 ms' and not exists (
         select from runs r where r.facts -> 'scripts' ->> t.ref = t.digest
            and (r.state = any($1) or r.state_since > now() - $2 * interval '1 ms'))
        order by t.used_at limit $3)
       and s.used_at < now() - $2 * interval '1 ms'
     returning 1`,
    [ACTIVE_RUN_PHASES, milliseconds(Math.max(retention, KEPT_AT_LEAST)), Math.floor(most)],
  );
  if (removed.length > 0) failPoint("script-texts:forgotten");
  return removed.length;
}
