import { parseReference } from "../../capabilities/secrets/secret-references.ts";
import { reachOf } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import { asReference } from "../../store/access/stored-reference.ts";
import type { Caller } from "./caller.ts";
import type { ServiceDeps } from "./deps.ts";
import { expandRoles } from "./roles.ts";

/** A credential as a caller gave it: itself, or by where it is kept. */
export interface GivenSecret {
  /** What it is now, to be checked and tried. */
  readonly value: string;
  /** What is put on record. */
  readonly stored: string;
}

/** A password may begin like a reference. */
const LITERAL = /^literal:(?=(env|file|vault):)/;

/**
 * Every credential that a caller gives goes through here. `env:NAME`, `file:/path` and `vault:mount/path#field` name one that is kept
 * elsewhere, which an administrator alone may do: whoever else could have the server read its own files and send them to a device. So could a token for some things read what belongs to others.
 */
export async function givenSecret(
  { references }: Pick<ServiceDeps, "references">,
  caller: Pick<Caller, "roles" | "scope">,
  text: string,
  field: string,
): Promise<GivenSecret> {
  // What is on record marks its references with it.
  if (text.includes("\0")) throw new AppError("invalid_argument", `${field}: must not contain NUL`, { field });
  if (LITERAL.test(text)) return same(text.replace(LITERAL, ""));
  if (parseReference(text) === undefined) return same(text);
  if (!expandRoles(caller.roles).has("admin"))
    throw new AppError("permission_denied", `${field}: a reference to a secret requires role admin`, {
      field,
      next: "give the value itself; literal: in front of one that begins with env:, file: or vault:",
    });
  if (reachOf(caller.scope) !== undefined)
    throw new AppError("permission_denied", `${field}: a reference to a secret requires a token without a scope`, {
      field,
      next: "give the value itself: a reference could lead to what belongs to other things",
    });
  const value = (await references?.resolve(text)) ?? new AppError("failed_precondition", "references are off here");
  if (typeof value === "string") return { value, stored: asReference(text) };
  throw new AppError("invalid_argument", `${field}: ${value.message}`, {
    field,
    ...(value.detail.next !== undefined && { next: value.detail.next }),
  });
}

const same = (text: string): GivenSecret => ({ value: text, stored: text });

/** The same where nothing is tried with it: what is put on record. Absent and empty stay as they are. */
export async function storedSecret<T extends string | undefined>(
  deps: Pick<ServiceDeps, "references">,
  caller: Pick<Caller, "roles" | "scope">,
  text: T,
  field: string,
): Promise<T | string> {
  return text === undefined || text === "" ? text : (await givenSecret(deps, caller, text, field)).stored;
}
