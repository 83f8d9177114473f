import { createHash, timingSafeEqual } from "node:crypto";
import type { Duration } from "../../kernel/time/duration.ts";
import type { Enrollment } from "../../lifecycles/fleet-node/fleet-node.ts";
import type { Signer } from "../access/secrets.ts";
import { tokenFrom } from "../access/tokens.ts";

const TOKEN = "fleet enrolment";
/** A signature has 16 bytes, and a bearer token 40. */
const BEARER = ["fleet agent 1", "fleet agent 2", "fleet agent 3"] as const;

const hashOfEnrolmentToken = (token: string): string => createHash("sha256").update(token).digest("hex");

export interface IssuedEnrolment {
  /** Told to the node alone. */
  readonly token: string;
  /** What is kept of it. */
  readonly enrollment: Enrollment;
}

/** The single-use token of a node and the number of its issue: it follows from both, so that a crash between two writes cannot make two. */
function issued(signer: Signer, nodeId: string, issue: number): { readonly token: string; readonly tokenHash: string } {
  const token = `mwe_${signer.sign(TOKEN, JSON.stringify([nodeId, issue]))}`;
  return { token, tokenHash: hashOfEnrolmentToken(token) };
}

interface Asked {
  readonly nodeId: string;
  /** What is on record now. */
  readonly enrollment: Enrollment | null;
  readonly ttl: Duration;
  readonly now: Date;
}

/** Another token; those of before are worth nothing once it is on record. */
export function nextEnrolment(signer: Signer, { nodeId, enrollment, ttl, now }: Asked): IssuedEnrolment {
  const issue = (enrollment?.issue ?? 0) + 1;
  const { token, tokenHash } = issued(signer, nodeId, issue);
  const expiresAt = new Date(now.getTime() + ttl).toISOString();
  return { token, enrollment: { issue, tokenHash, expiresAt, consumedAt: null } };
}

/**
 * The token that the node can enrol with: the one on record while it can be used for half of its time at least, and can be told again; else
 * the next one. A stage that is done twice so hands out the same.
 */
export function currentEnrolment(signer: Signer, asked: Asked): IssuedEnrolment {
  const { nodeId, enrollment, ttl, now } = asked;
  if (enrollment === null || enrollment.consumedAt !== null) return nextEnrolment(signer, asked);
  const known = issued(signer, nodeId, enrollment.issue);
  const isGood =
    known.tokenHash === enrollment.tokenHash && Date.parse(enrollment.expiresAt) - now.getTime() >= ttl / 2;
  return isGood ? { token: known.token, enrollment } : nextEnrolment(signer, asked);
}

export const isTokenOf = ({ tokenHash }: Enrollment, token: string): boolean =>
  timingSafeEqual(Buffer.from(tokenHash), Buffer.from(hashOfEnrolmentToken(token)));

/**
 * The bearer token that an enrolment is answered with. It follows from the enrolment token and what the agent chose, so that an agent
 * whose answer was lost can ask again.
 */
export function bearerFor(
  signer: Signer,
  request: { readonly nodeId: string; readonly token: string; readonly nonce: string },
): { readonly id: string; readonly token: string; readonly requestSha: Buffer } {
  const text = JSON.stringify([request.nodeId, request.token, request.nonce]);
  const bytes = Buffer.concat(BEARER.map((purpose) => Buffer.from(signer.sign(purpose, text), "base64url")));
  return { ...tokenFrom(bytes), requestSha: createHash("sha256").update(text).digest() };
}
