import type { Duration } from "../../kernel/time/duration.ts";
import { ACTIVE_RUN_PHASES } from "../../runs/model/run.ts";
import type { SecretStore } from "../access/secrets.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

/** Documents may hold passwords: the copies of runs are kept among the secrets, for all attempts at the job. */
const nameOf = (jobId: string, document: string): string => `job-document/${jobId}/${document}`;

/** What a run is told beside its plan, as it was when its job began. */
export async function keepDocuments(
  tx: Transaction,
  secrets: SecretStore,
  jobId: string,
  documents: ReadonlyMap<string, string>,
): Promise<void> {
  for (const [name, content] of documents) await secrets.put(tx, nameOf(jobId, name), content);
}

/** Removes the copies of jobs all of whose runs ended before then: who repeats one of those takes the documents of now. */
export async function forgetDocuments(db: Queryable, retention: Duration, most: number): Promise<number> {
  const removed = await db.query(
    `delete from secrets where name in (
       select s.name from secrets s
        where s.name like 'job-document/%' and not exists (
          select 1 from runs r where r.job_id = split_part(s.name, '/', 2)
             and (r.state = any($1) or r.state_since > now() - $2 * interval '1 ms'))
        limit $3)
     returning 1`,
    [ACTIVE_RUN_PHASES, retention, Math.floor(most)],
  );
  if (removed.length > 0) failPoint("run-documents:forgotten");
  return removed.length;
}

/** Undefined for jobs that began before documents were kept. */
export const findDocument = (
  db: Queryable,
  secrets: SecretStore,
  jobId: string,
  document: string,
): Promise<string | undefined> => secrets.get(db, nameOf(jobId, document));
