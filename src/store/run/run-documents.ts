import type { SecretStore } from "../access/secrets.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";

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

/** Undefined for jobs that began before documents were kept. */
export const findDocument = (
  db: Queryable,
  secrets: SecretStore,
  jobId: string,
  document: string,
): Promise<string | undefined> => secrets.get(db, nameOf(jobId, document));
