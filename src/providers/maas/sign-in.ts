import { randomUUID } from "node:crypto";
import type { MaasTarget } from "../../capabilities/fleet/maas.ts";
import { AppError } from "../../kernel/errors.ts";

/** A key of MAAS in its three parts. */
export interface ApiKey {
  readonly consumer: string;
  readonly token: string;
  readonly secret: string;
}

const PARTS = /^([!-9;-~]+):([!-9;-~]+):([!-9;-~]+)$/;

export function parseApiKey(text: string): ApiKey {
  const [, consumer, token, secret] = PARTS.exec(text.trim()) ?? [];
  if (consumer === undefined || token === undefined || secret === undefined)
    throw new AppError(
      "invalid_argument",
      "api_key must be three parts joined by ':', as MAAS shows them under API keys",
      { field: "api_key" },
    );
  return { consumer, token, secret };
}

/**
 * OAuth 1.0 with the PLAINTEXT method: the signature is the secret itself, so that it must not go over a connection that others can read.
 * MAAS takes a nonce once; each request has its own.
 */
export function signedHeader({ apiKey }: Pick<MaasTarget, "apiKey">, now: Date): string {
  const { consumer, token, secret } = parseApiKey(apiKey);
  const fields = {
    oauth_version: "1.0",
    oauth_signature_method: "PLAINTEXT",
    oauth_consumer_key: consumer,
    oauth_token: token,
    oauth_signature: `&${secret}`,
    oauth_nonce: randomUUID(),
    oauth_timestamp: String(Math.floor(now.getTime() / 1_000)),
  };
  const list = Object.entries(fields).map(([name, value]) => `${name}="${encodeURIComponent(value)}"`);
  return `OAuth ${list.join(", ")}`;
}
