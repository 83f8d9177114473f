import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { Credential } from "../../services/system/sessions.ts";
import type { TokenVerdict } from "../../services/system/tokens.ts";
import { type Identity, identityOf, unauthenticated } from "./identity.ts";

/** A token that the configuration knows by its hash. */
export interface KnownToken {
  readonly name: string;
  readonly roles: readonly string[];
  /** Of the whole token, lower-case hex. */
  readonly sha256: string;
}

/** A verdict that may know of another credential behind it. */
type Verdict = TokenVerdict & { readonly credential?: Credential };

export interface BearerTokenOptions {
  /** What they are called where they are refused. Absent: bearer tokens. */
  readonly called?: string;
  verify(token: string): Promise<Verdict>;
  readonly known: readonly KnownToken[];
  /** How long a good verdict is trusted; a revocation elsewhere takes that long to be seen here. */
  readonly cacheFor: Duration;
  readonly clock: Clock;
  /** Told of each call with a token from the database, agents' excepted; must be quick. */
  readonly used?: (tokenId: string) => void;
}

export interface BearerTokens {
  identify(token: string): Promise<Identity>;
  /** Call after revoking, so that on this replica it counts at once; without an id: whatever was revoked. */
  forget(tokenId?: string): void;
}

const MAX_CACHED = 10_000;

interface Cached {
  readonly verdict: Extract<Verdict, { status: "valid" }>;
  readonly until: number;
}

export function createBearerTokens(options: BearerTokenOptions): BearerTokens {
  const { verify, known, cacheFor, clock, used, called = "bearer token" } = options;
  // Keyed by digest: the tokens themselves do not stay in memory.
  const cache = new Map<string, Cached>();
  let forgotten = 0;
  const inFlight = new Map<string, Promise<Verdict>>();
  const knownHashes = known.map((token) => ({ token, hash: Buffer.from(token.sha256, "hex") }));

  function verifyOnce(token: string, digest: string): Promise<Verdict> {
    const running = inFlight.get(digest);
    if (running !== undefined) return running;
    const started = verify(token).finally(() => {
      if (inFlight.get(digest) === started) inFlight.delete(digest);
    });
    inFlight.set(digest, started);
    return started;
  }

  function remember(digest: string, verdict: Cached["verdict"]): void {
    const [oldest] = cache.keys();
    if (cache.size >= MAX_CACHED && oldest !== undefined) cache.delete(oldest);
    cache.set(digest, { verdict, until: clock.monotonic() + cacheFor });
  }

  async function verdictOn(token: string, digest: string): Promise<Verdict> {
    const cached = cache.get(digest);
    if (cached !== undefined && clock.monotonic() < cached.until) {
      const { expiresAt } = cached.verdict;
      return expiresAt === null || clock.now() < expiresAt ? cached.verdict : { status: "expired", at: expiresAt };
    }
    cache.delete(digest);
    const asOf = forgotten;
    const verdict = await verifyOnce(token, digest);
    // An answer that was under way while a token was forgotten may be older than its revocation.
    if (verdict.status === "valid" && asOf === forgotten) remember(digest, verdict);
    return verdict;
  }

  return {
    async identify(token) {
      const hash = createHash("sha256").update(token).digest();
      const match = knownHashes.find((candidate) => timingSafeEqual(candidate.hash, hash));
      if (match !== undefined) {
        const { name, roles, sha256: ref } = match.token;
        return { ...identityOf(name, roles, "auth.tokens"), credential: { kind: "configured", ref } };
      }

      const verdict = await verdictOn(token, hash.toString("hex"));
      if (verdict.status === "valid") {
        const { id: tokenId, boundTo: nodeId, scope } = verdict;
        // Of agents, who call all the time, it is written elsewhere when they were heard last.
        if (nodeId === null) used?.(tokenId);
        const identity = {
          ...identityOf(verdict.name, verdict.roles, `the ${called}`),
          credential: verdict.credential ?? ({ kind: "token", ref: tokenId } as const),
          ...(nodeId !== null && { agent: { nodeId, tokenId } }),
          ...(scope !== null && { scope }),
        };
        return verdict.expiresAt === null ? identity : { ...identity, validUntil: verdict.expiresAt };
      }
      if (verdict.status === "unknown") throw unauthenticated(`the ${called} is not known here`);
      throw unauthenticated(
        `the ${called} was ${verdict.status === "expired" ? "valid until" : "revoked at"} ${verdict.at.toISOString()}`,
      );
    },
    forget(tokenId) {
      forgotten += 1;
      inFlight.clear();
      for (const [digest, { verdict }] of cache)
        if (tokenId === undefined || verdict.id === tokenId) cache.delete(digest);
    },
  };
}
