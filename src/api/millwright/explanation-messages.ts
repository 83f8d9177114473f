import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ClaimLinkSchema, ExplainResponseSchema } from "../../../contract/millwright/v1/explain_pb.js";
import type { ClaimLink, Explanation } from "../../services/explain/explain.ts";
import { timestampOf } from "../convert/fields.ts";

export const explanationOf = (explanation: Explanation): MessageInitShape<typeof ExplainResponseSchema> => {
  const { headline, doing, waitingFor, since, claims, lastFailure, nextCommands } = explanation;
  return {
    headline,
    doing,
    waitingFor: [...waitingFor],
    since: timestampOf(since),
    claims: claims.map(claimLinkOf),
    ...(lastFailure && { lastFailure: { ...lastFailure, at: timestampOf(lastFailure.at) } }),
    nextCommands: nextCommands.map((one) => ({ ...one })),
  };
};

const claimLinkOf = ({ thing, holder, since, reason }: ClaimLink): MessageInitShape<typeof ClaimLinkSchema> => ({
  thingKind: thing.kind,
  thingId: thing.id,
  claim: { holderKind: holder.kind, holderId: holder.id, since: timestampOf(since) },
  reason,
});
