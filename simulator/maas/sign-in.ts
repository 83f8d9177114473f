import { ApiFailure } from "./api-failure.ts";

export interface ApiKey {
  readonly consumer: string;
  readonly token: string;
  readonly secret: string;
}

export const textOf = ({ consumer, token, secret }: ApiKey): string => `${consumer}:${token}:${secret}`;

const LONGEST_SKEW_SECONDS = 300;
const REQUIRED = [
  "oauth_consumer_key",
  "oauth_token",
  "oauth_signature",
  "oauth_signature_method",
  "oauth_timestamp",
  "oauth_nonce",
] as const;

/** Checks OAuth 1.0 with the PLAINTEXT method: the key, the time, and that no request is sent twice. */
export class SignIn {
  readonly #keys: ReadonlyMap<string, ApiKey>;
  readonly #realNow: () => number;
  /** By nonce, with the time after which it is too old anyway. */
  readonly #nonces = new Map<string, number>();

  constructor(keys: readonly ApiKey[], realNow: () => number) {
    this.#keys = new Map(keys.map((key) => [key.consumer, key]));
    this.#realNow = realNow;
  }

  check(header: string | undefined): void {
    const given = parseHeader(header);
    if (given === undefined || REQUIRED.some((name) => !given.has(name)))
      throw new ApiFailure(401, "Unrecognised signature: this call needs an API key.");
    const key = this.#keys.get(given.get("oauth_consumer_key") ?? "");
    if (key === undefined || key.token !== given.get("oauth_token"))
      throw new ApiFailure(401, "Authorization Error: Invalid API key.");
    if (given.get("oauth_signature_method") !== "PLAINTEXT" || given.get("oauth_signature") !== `&${key.secret}`)
      throw new ApiFailure(401, "Authorization Error: Invalid signature.");
    const timestamp = given.get("oauth_timestamp") ?? "";
    if (!/^\d{1,12}$/.test(timestamp)) throw new ApiFailure(400, "Invalid timestamp.");
    this.#checkFresh(Number(timestamp), given.get("oauth_nonce") ?? "");
  }

  #checkFresh(timestamp: number, nonce: string): void {
    const now = this.#realNow() / 1_000;
    if (Math.abs(now - timestamp) > LONGEST_SKEW_SECONDS)
      throw new ApiFailure(401, "Authorization Error: Expired timestamp.");
    for (const [old, until] of this.#nonces) {
      if (until > now) break;
      this.#nonces.delete(old);
    }
    const used = `${timestamp}/${nonce}`;
    if (this.#nonces.has(used)) throw new ApiFailure(401, "Authorization Error: Nonce already used.");
    this.#nonces.set(used, now + 2 * LONGEST_SKEW_SECONDS);
  }
}

function parseHeader(header: string | undefined): ReadonlyMap<string, string> | undefined {
  const [, list] = /^OAuth\s+(.*)$/is.exec(header ?? "") ?? [];
  if (list === undefined) return undefined;
  const pairs = [...list.matchAll(/([A-Za-z_]+)="([^"]*)"/g)];
  return new Map(pairs.map(([, name = "", value = ""]) => [name, decode(value)]));
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
