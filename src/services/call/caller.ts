import type { Scope } from "../../kernel/access/scope.ts";

/** Who asks. Made by the transport from credentials that were checked; services trust it. */
export interface Caller {
  /** Recorded as the initiator of what is done; null when nobody signed in, which only `auth.mode = off` allows. */
  readonly name: string | null;
  readonly roles: readonly string[];
  /** What the credentials are limited to, besides the roles; absent: nothing. */
  readonly scope?: Scope;
  /** Set where the bearer is the agent of one fleet node, and speaks for no other. */
  readonly agent?: { readonly nodeId: string; readonly tokenId: string };
  /** Where the connection comes from, for the audit; null when the transport has no address. */
  readonly address: string | null;
  /** The trace that the call belongs to (W3C traceparent): the work that it causes joins it. */
  readonly traceparent?: string;
}
