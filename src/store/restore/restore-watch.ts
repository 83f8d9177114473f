import { randomUUID } from "node:crypto";
import { messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import type { Finding } from "../../lifecycles/restore-review/restore-review.ts";
import type { Queryable, Session, Transaction } from "../postgres/database.ts";
import { retryOnConflict } from "../postgres/database-errors.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { beginReview } from "./begin-review.ts";
import { judge } from "./judge.ts";
import { findLiveReview } from "./reviews.ts";
import { readStanding, type Standing } from "./standing.ts";
import { beat, readNewest } from "./witness.ts";
import { readWitnessFile, type Witnessed, writeWitnessFile } from "./witness-file.ts";

export interface RestoreWatchOptions {
  /** Names this process. */
  readonly replica: string;
  /** Where the memory outlasts the process. */
  readonly directory: string;
  readonly log: Log;
  /** An operator says that the database was restored, whatever it shows, and names the restore. Null: nobody says so. */
  readonly restored: string | null;
}

/**
 * Recognises a database that was restored from a backup, at every new connection, before it is used: no pass, no call and no answer comes of
 * what a backup says before the review of the restore has begun.
 *
 * A replica remembers what the database has confirmed to it, and leaves that in its data directory. What was confirmed survives a
 * crash, so that a database without it is an older one.
 */
export class RestoreWatch {
  readonly #options: RestoreWatchOptions;
  readonly #witness = randomUUID();
  /** Never changed in place: who has begun to compare goes on with what it was then. */
  #memory: Witnessed | null;
  /** Until it is on record. */
  #restored: string | null;
  #fileTrouble = "";

  constructor(options: RestoreWatchOptions) {
    this.#options = options;
    this.#memory = readWitnessFile(options.directory);
    this.#restored = options.restored;
  }

  /** For each new connection. Begins a review where the database was restored, unless another replica has. */
  async check(session: Session): Promise<void> {
    const memory = this.#memory; // before the question: what is confirmed meanwhile, the answer may not show
    const standing = await readStanding(session, memory?.witness ?? null);
    if (standing.recorded === null || this.#restored !== null || judge(standing, memory).length > 0)
      await this.#settle(session, memory);
    else this.#follow(memory, standing.recorded.generation);
  }

  /** Has the database confirm that it goes on from what it confirmed last, and keeps that. */
  async beat(db: Session): Promise<void> {
    const memory = this.#memory;
    const last = memory?.witness === this.#witness ? memory : null;
    const revokedSince = memory?.revoked.at(-1)?.revokedAt ?? null;
    const confirmed = await beat(db, { witness: this.#witness, last, revokedSince });
    const isSame = confirmed?.databaseId === memory?.databaseId;
    if (confirmed === null || (isSame && memory !== null && confirmed.generation < memory.generation))
      return this.check(db);
    this.#remember({
      ...confirmed,
      witness: this.#witness,
      revoked: [...(isSame && memory !== null ? memory.revoked : []), ...confirmed.revoked],
    });
  }

  /** Something was written: what is there now must be there later. Between two beats, for this process alone. */
  async note(db: Queryable): Promise<void> {
    const seen = await readNewest(db);
    const memory = this.#memory;
    if (memory && seen?.databaseId === memory.databaseId && seen.generation === memory.generation)
      this.#memory = { ...memory, cursor: seen.cursor, at: seen.at };
  }

  /** Whoever comes first says what the database is; the others find it said. */
  async #settle(session: Session, memory: Witnessed | null): Promise<void> {
    const restored = this.#restored;
    const settle = async (tx: Transaction): Promise<number | null> => {
      await tx.execute("lock table database_identity in exclusive mode");
      const standing = await readStanding(tx, memory?.witness ?? null);
      if (standing.recorded === null) await writeIdentity(tx, standing);
      const said = restored !== null && (await declare(tx, restored, this.#options.replica));
      const findings = [...judge(standing, memory), ...(said ? [saidOf(restored)] : [])];
      if (findings.length === 0) return standing.recorded?.generation ?? null;
      // Of a database in which nothing has happened nobody has to be asked.
      const isOpen = standing.newest === null || (await findLiveReview(tx)) !== undefined;
      if (findings.every(({ sign }) => sign === "operator") && isOpen) return null;
      return this.#begin(tx, { standing, findings, memory });
    };
    const generation = await retryOnConflict(() => session.transaction(settle));
    this.#restored = null;
    if (generation !== null) this.#follow(memory, generation);
  }

  async #begin(
    tx: Transaction,
    found: { readonly standing: Standing; readonly findings: readonly Finding[]; readonly memory: Witnessed | null },
  ): Promise<number> {
    const { standing, findings, memory } = found;
    const isOfIt = memory?.databaseId === standing.recorded?.databaseId;
    const { id, generation } = await beginReview(tx, {
      findings,
      standing,
      seenGeneration: isOfIt ? (memory?.generation ?? 0) : 0,
      revoked: isOfIt ? (memory?.revoked ?? []) : [],
      replica: this.#options.replica,
    });
    const why = findings.map(({ message }) => message).join("; ");
    tx.logWhenCommitted(
      { review: id, signs: findings.map(({ sign }) => sign), why },
      "the database was restored from a backup: nothing that was under way goes on, see millwright restore review",
      "warn",
    );
    return generation;
  }

  /** What was seen of the database before a restore that somebody has found says nothing about it any more. */
  #follow(memory: Witnessed | null, generation: number): void {
    if (memory === null || this.#memory?.generation !== memory.generation || generation <= memory.generation) return;
    this.#memory = { ...memory, generation, beat: 0, cursor: null };
  }

  #remember(memory: Witnessed): void {
    const { directory, log } = this.#options;
    this.#memory = memory;
    try {
      writeWitnessFile(directory, memory);
      this.#fileTrouble = "";
    } catch (error) {
      // It is known as long as this process lives; the next one has nothing to compare with.
      if (messageOf(error) !== this.#fileTrouble)
        log.warn(
          { err: error },
          "what was seen of the database cannot be kept: the next start may not recognise a restored backup",
        );
      this.#fileTrouble = messageOf(error);
    }
  }
}

const saidOf = (restored: string): Finding => ({
  sign: "operator",
  message: `a server was started with --restored ${restored}`,
});

/** Whether it is new: a server that starts again with the same name parks nothing again. */
async function declare(tx: Transaction, restored: string, replica: string): Promise<boolean> {
  const written = await tx.execute(
    "insert into restore_declarations (name, declared_by) values ($1, $2) on conflict (name) do nothing",
    [restored, replica],
  );
  failPoint("restore:declared");
  return written > 0;
}

async function writeIdentity(tx: Transaction, { actual }: Standing): Promise<void> {
  await tx.execute("insert into database_identity (system_identifier, database_oid, journal_oid) values ($1, $2, $3)", [
    actual.systemIdentifier,
    actual.databaseOid,
    actual.journalOid,
  ]);
  failPoint("restore:identity-written");
}
