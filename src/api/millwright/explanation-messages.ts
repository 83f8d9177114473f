import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ActionCallSchema,
  ClaimLinkSchema,
  ExplainResponseSchema,
} from "../../../contract/millwright/v1/explain_pb.js";
import { callOf } from "../../services/explain/command-call.ts";
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
    nextCommands: nextCommands.map(({ command, why }) => ({ command, why, ...withCall("call", command) })),
  };
};

/** The call behind a command, in a field of that name; nothing where there is none. */
export function withCall<F extends string>(field: F, command: string) {
  const call = callOf(command);
  return (call && { [field]: { ...call, missing: [...call.missing] } }) as
    | { readonly [name in F]: MessageInitShape<typeof ActionCallSchema> }
    | undefined;
}

const claimLinkOf = ({ thing, holder, since, reason }: ClaimLink): MessageInitShape<typeof ClaimLinkSchema> => ({
  thingKind: thing.kind,
  thingId: thing.id,
  claim: { holderKind: holder.kind, holderId: holder.id, since: timestampOf(since) },
  reason,
});
