import type { ServiceImpl } from "@connectrpc/connect";
import { ParkedVerdict, type RestoreService } from "../../../../contract/millwright/v1/restore_pb.js";
import { AppError } from "../../../kernel/errors.ts";
import {
  endReview,
  getReview,
  type ParkedWork,
  pageParked,
  type ShownReview,
} from "../../../services/restore/reviews.ts";
import { type Ending, type SettledThing, settleParked } from "../../../services/restore/settle.ts";
import type { RunDeps } from "../../../services/run/deps.ts";
import { timestampOf } from "../../convert/fields.ts";
import { listRequestFrom, pageOf } from "../../convert/listing.ts";
import { callerKey } from "../../transport/interceptors.ts";

const dateOf = (text: string | null) => timestampOf(text === null ? null : new Date(text));

const reviewOf = ({ review: { id, state, createdAt, facts }, parked }: ShownReview) => ({
  ...{ id, parked },
  state: state.name,
  createdAt: timestampOf(createdAt),
  findings: facts.findings.map(({ sign, message }) => ({ sign, message })),
  asOf: dateOf(facts.asOf),
  returnedTokens: facts.returnedTokens.map(({ id: token, name, revokedAt }) => ({
    id: token,
    name,
    revokedAt: dateOf(revokedAt),
  })),
  foundBy: facts.foundBy,
});

const workOf = ({ parkedAt, verdict, settledAt, settledBy, reviewId, kind, id, doing }: ParkedWork) => ({
  ...{ reviewId, kind, id, doing },
  parkedAt: timestampOf(parkedAt),
  status: verdict ?? "waiting",
  settledAt: timestampOf(settledAt),
  settledBy: settledBy ?? "",
});

const settledOf = ({ kind, id, seen, refused }: SettledThing) => ({
  ...{ kind, id, seen },
  error: refused?.message ?? "",
  next: refused?.detail.next ?? "",
});

const VERDICTS: Readonly<Record<ParkedVerdict, Ending | null>> = {
  [ParkedVerdict.UNSPECIFIED]: null,
  [ParkedVerdict.RESUME]: "resumed",
  [ParkedVerdict.ADOPT]: "adopted",
  [ParkedVerdict.ABANDON]: "abandoned",
};

function verdictFrom(word: ParkedVerdict): Ending {
  const verdict = VERDICTS[word];
  if (verdict) return verdict;
  throw new AppError("invalid_argument", "verdict: must be RESUME, ADOPT or ABANDON", { field: "verdict" });
}

export const restore = (deps: RunDeps): ServiceImpl<typeof RestoreService> => ({
  getRestoreReview: async () => ({ review: reviewOf(await getReview(deps)) }),
  async listParkedWork(request) {
    const page = await pageParked(deps, listRequestFrom(request, null));
    return { work: page.items.map(workOf), ...pageOf(page) };
  },
  async settleParkedWork({ things, verdict, force }, { values, signal }) {
    const named = things.map(({ kind, id }) => ({ kind, id }));
    const asked = { things: named, verdict: verdictFrom(verdict), force };
    return { results: (await settleParked(deps, values.get(callerKey), asked, signal)).map(settledOf) };
  },
  async endRestoreReview(_request, { values }) {
    const ended = await endReview(deps, values.get(callerKey));
    return ended ? { review: reviewOf(ended) } : {};
  },
});
