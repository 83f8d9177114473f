import { AppError } from "../../kernel/errors.ts";
import {
  countUnsealed,
  findSeal,
  newestSeal,
  openSealKey,
  type Seal,
} from "../../store/lifecycle/seals/journal-seals.ts";
import { headText } from "../../store/lifecycle/seals/seal-chain.ts";
import { type JournalProblem, type Verified, verifyAfter } from "../../store/lifecycle/seals/verify-seals.ts";
import type { ServiceDeps } from "../call/deps.ts";

export type { JournalProblem } from "../../store/lifecycle/seals/verify-seals.ts";

export interface VerifiedPage extends Pick<Verified, "seals" | "entries" | "removed"> {
  readonly problem: JournalProblem | undefined;
  /** 0: this was the last page. */
  readonly nextSeal: number;
  readonly head: { readonly text: string; readonly sealedAt: Date } | null;
  readonly unsealed: { readonly entries: number; readonly since: Date | null } | null;
}

export interface VerifyRequest {
  readonly afterSeal: number;
  readonly head: string;
}

/** Verifies the next seals, and what they cover. */
export async function verifyJournal(deps: ServiceDeps, request: VerifyRequest): Promise<VerifiedPage> {
  const { db } = deps;
  const wanted = parseHead(request.head);
  checkAfter(request.afterSeal);
  const key = await openSealKey(db, deps.secrets)();
  if (wanted !== null && (await newestOrFind(deps, wanted.number, request.head)) === undefined)
    return broken({ kind: "head_missing", seal: wanted.number, sealedAt: null, entry: null });
  const after = request.afterSeal === 0 ? undefined : await findSeal(db, request.afterSeal);
  if (request.afterSeal !== 0 && after === undefined)
    return broken({ kind: "seal_missing", seal: request.afterSeal, sealedAt: null, entry: null });
  const { seals, entries, removed, last, isEnd, problem } = await verifyAfter(db, key, after);
  return {
    ...{ seals, entries, removed, problem },
    nextSeal: isEnd || last === undefined ? 0 : last.number,
    head: last === undefined ? null : { text: headText(last), sealedAt: last.sealedAt },
    unsealed: isEnd && problem === undefined ? await countUnsealed(db) : null,
  };
}

const broken = (problem: JournalProblem): VerifiedPage => ({
  ...{ seals: 0, entries: 0, removed: 0, problem, nextSeal: 0, head: null, unsealed: null },
});

/** The seal that a head names, if it is there and is that one. */
async function newestOrFind({ db }: ServiceDeps, number: number, head: string): Promise<Seal | undefined> {
  const newest = await newestSeal(db);
  const seal = newest?.number === number ? newest : await findSeal(db, number);
  return seal !== undefined && headText(seal) === head ? seal : undefined;
}

const HEAD = /^([1-9]\d{0,14}):[0-9a-f]{64}$/;

function parseHead(head: string): { readonly number: number } | null {
  if (head === "") return null;
  const number = HEAD.exec(head)?.[1];
  if (number !== undefined) return { number: Number(number) };
  throw new AppError(
    "invalid_argument",
    "head: must be a number, a colon and 64 hexadecimal digits, as the log has it",
    {
      field: "head",
    },
  );
}

function checkAfter(seal: number): void {
  if (Number.isSafeInteger(seal) && seal >= 0) return;
  throw new AppError("invalid_argument", "after_seal: must be 0, or next_seal of the page before", {
    field: "after_seal",
  });
}
