import { type Duration, minutes } from "../../kernel/time/duration.ts";
import type { AttentionSql } from "../lifecycle/attention.ts";

/** For how long a device may fail before somebody should look: one lost packet is no news. */
export const FAILING_TOLERATED: Duration = minutes(1);

export const FAILS_TOO_LONG = `(t.outcome ->> 'type' = 'failing'
  and (t.outcome ->> 'since')::timestamptz < now() - interval '${FAILING_TOLERATED} ms')`;
export const NEEDS_PERSON = `t.outcome ->> 'type' = 'needs_intervention'`;

/** There are few devices besides machines, so that no index need find them. */
export const deviceAttention: AttentionSql = {
  applies: `(${NEEDS_PERSON} or ${FAILS_TOO_LONG})`,
  filter: "stuck=true",
};
