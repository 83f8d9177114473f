import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../../../kernel/time/clock.ts";
import type { Duration } from "../../../kernel/time/duration.ts";

/** Codes that sign somebody in once, in the place of a token: links to the console hold one. They live in this process alone. */
export class OneTimeCodes {
  readonly #clock: Clock;
  /** By the digest of the code. */
  readonly #tokens = new Map<string, { readonly token: string; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  issue(token: string, validFor: Duration): string {
    const code = randomBytes(24).toString("base64url");
    this.#tokens.set(digestOf(code), { token, until: this.#clock.monotonic() + validFor });
    return code;
  }

  /** The token that the code stands for; undefined for one that is unknown, too old, or was used. */
  redeem(code: string): string | undefined {
    const digest = digestOf(code);
    const found = this.#tokens.get(digest);
    this.#tokens.delete(digest);
    return found && this.#clock.monotonic() < found.until ? found.token : undefined;
  }
}

const digestOf = (code: string): string => createHash("sha256").update(code).digest("hex");
