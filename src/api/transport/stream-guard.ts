import { AppError } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { SignedIn } from "../auth/authenticate.ts";

export interface StreamGuardOptions {
  /** How often the caller of an open stream is checked again. */
  readonly every: Duration;
  readonly clock: Clock;
}

/**
 * A call is authorised once, at its start; a stream may then last for weeks. The guard asks again now and then, as soon as the
 * credentials run out, and when it is told that some were revoked, and ends the streams of who may no longer call.
 */
export class StreamGuard {
  readonly #every: Duration;
  readonly #clock: Clock;
  readonly #open = new Set<() => void>();

  constructor({ every, clock }: StreamGuardOptions) {
    this.#every = every;
    this.#clock = clock;
  }

  /** Calls `refuse` once when `authenticate` does not let the caller in any more. The answer ends the guarding. */
  guard(
    first: SignedIn,
    { authenticate, refuse }: { authenticate(): Promise<SignedIn>; refuse(reason: AppError): void },
  ): () => void {
    let timer: NodeJS.Timeout | undefined;
    let open = true;
    const stop = () => {
      open = false;
      clearTimeout(timer);
      this.#open.delete(ask);
    };
    const askLater = ({ validUntil }: SignedIn) => {
      if (!open) return;
      clearTimeout(timer);
      timer = setTimeout(ask, this.#untilNextLook(validUntil)).unref();
    };
    const ask = () => {
      authenticate().then(askLater, (error: unknown) => {
        if (!open) return;
        // Anything else is our own trouble, such as a database that is away: nobody loses a stream for that.
        if (!isRefusal(error)) return askLater(first);
        stop();
        refuse(error);
      });
    };
    this.#open.add(ask);
    askLater(first);
    return stop;
  }

  /** Credentials were revoked: asks about every open stream now. */
  lookAgain(): void {
    for (const ask of this.#open) ask();
  }

  #untilNextLook(validUntil: Date | undefined): number {
    const left = validUntil === undefined ? this.#every : validUntil.getTime() - this.#clock.now().getTime();
    // Past it, too: a clock that is behind the database's must not make this a busy loop.
    return left > 0 ? Math.min(left, this.#every) : this.#every;
  }
}

const isRefusal = (error: unknown): error is AppError =>
  error instanceof AppError && (error.kind === "unauthenticated" || error.kind === "permission_denied");
