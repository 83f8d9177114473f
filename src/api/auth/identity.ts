import type { Scope } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import type { Credential } from "../../services/system/sessions.ts";

/** Who the credentials belong to. */
export interface Identity {
  readonly name: string;
  readonly roles: readonly string[];
  /** What the credentials are limited to; absent: to their roles alone. */
  readonly scope?: Scope;
  /** The fleet node that the credentials speak for, and the token that says so; absent: they are a caller's own. */
  readonly agent?: { readonly nodeId: string; readonly tokenId: string };
  /** What was shown, for a session to end with it; absent: a session of it has no end of its own. */
  readonly credential?: Credential;
  /** From then on the credentials let nobody in; absent: they do not run out. */
  readonly validUntil?: Date;
}

const MAX_NAME_CHARS = 256;

/**
 * The name goes into history, logs and terminals, and comes from outside: control characters in it could forge lines there.
 */
export function identityOf(name: string, roles: readonly string[], origin: string): Identity {
  const clean = name.trim();
  if (clean === "" || clean.length > MAX_NAME_CHARS || !isPrintable(clean)) {
    throw unauthenticated(`the name in ${origin} must have 1 to ${MAX_NAME_CHARS} printable characters`);
  }
  return { name: clean, roles };
}

/** Says what is wrong with the credentials, and how to sign in. */
export const unauthenticated = (message: string): AppError =>
  new AppError("unauthenticated", message, {
    next: 'send "authorization: Bearer <token>" or set MILLWRIGHT_TOKEN for the command line; an administrator makes tokens with "millwright token create"',
  });
