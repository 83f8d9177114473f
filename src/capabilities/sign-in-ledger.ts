import type { Duration } from "../kernel/time/duration.ts";

/** Credentials about to be tried at a BMC. */
export interface SignInAttempt {
  /** The BMC's address and port, in one spelling. */
  readonly endpoint: string;
  readonly username: string;
  readonly password: string;
}

/** The one spelling. */
export const signInEndpoint = ({ address, port }: { readonly address: string; readonly port: number }): string =>
  address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;

/** How often in a row a BMC has rejected certain credentials, whoever tried them. */
export interface SignInRejections {
  readonly count: number;
  /** The first of them. */
  readonly since: Date;
  /** For how much longer they are not to be tried; zero when they may. */
  readonly rest: Duration;
}

export interface SignInRule {
  /** Rejections in a row of the same credentials before they are no longer tried. BMCs commonly lock an account at 3 to 5. */
  readonly rejectionsToStop: number;
  /** After this, one more try; they may have been put right on the BMC. */
  readonly coolDown: Duration;
}

/**
 * What all replicas know of rejected credentials. A BMC counts the attempts of all of them, also of those before a restart, and
 * so must we, or N replicas would lock an account that none of them alone would.
 */
export interface SignInLedger {
  /** `undefined`: not rejected since they were last accepted, or never tried. */
  rejections(attempt: SignInAttempt): Promise<SignInRejections | undefined>;
  noteRejected(attempt: SignInAttempt, rule: SignInRule): Promise<SignInRejections>;
  noteAccepted(attempt: SignInAttempt): Promise<void>;
}
