import { AppError } from "../../kernel/errors.ts";

/** Who the credentials belong to. */
export interface Identity {
  readonly name: string;
  readonly roles: readonly string[];
}

const MAX_NAME_CHARS = 256;
const NOT_PRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/**
 * The name goes into history, logs and terminals, and comes from outside: control characters in it could forge lines there.
 */
export function identityOf(name: string, roles: readonly string[], origin: string): Identity {
  const clean = name.trim();
  if (clean === "" || clean.length > MAX_NAME_CHARS || NOT_PRINTABLE.test(clean)) {
    throw unauthenticated(`the name in ${origin} must have 1 to ${MAX_NAME_CHARS} printable characters`);
  }
  return { name: clean, roles };
}

/** Says what is wrong with the credentials, and how to sign in. */
export const unauthenticated = (message: string): AppError =>
  new AppError("unauthenticated", message, {
    next: 'send "authorization: Bearer <token>" or set MILLWRIGHT_TOKEN for the command line; an administrator makes tokens with "millwright token create"',
  });
