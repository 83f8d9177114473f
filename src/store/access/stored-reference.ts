import type { SecretReferences } from "../../capabilities/secrets/secret-references.ts";
import { AppError } from "../../kernel/errors.ts";

/** No credential that a caller gives has a NUL. */
const MARK = "\0ref:";

/** What stands on record for a credential that is kept elsewhere. */
export const asReference = (reference: string): string => `${MARK}${reference}`;

/**
 * Which secrets may be references, by the beginnings of their names, and in which field; `whole`: they have none. Every other text of
 * callers that is kept as a secret, such as the name of an account or a document of a job, is what it is.
 */
const REFERENCE_IN: Readonly<Record<string, string>> = {
  bmc: "password",
  ssh: "privateKey",
  nvos: "password",
  "fleet-site": "apiKey",
  cluster: "whole",
  "rack-firmware": "whole",
};

interface Found {
  readonly reference: string;
  /** The secret with what the reference leads to. */
  readonly filledWith: (value: string) => string;
}

function findReference(name: string, plaintext: string): Found | undefined {
  const field = REFERENCE_IN[name.slice(0, Math.max(0, name.indexOf("/")))];
  if (field === undefined) return undefined;
  if (field === "whole") return found(plaintext, (value) => value);
  const document = parsed(plaintext);
  const value = document?.[field];
  return typeof value === "string"
    ? found(value, (other) => JSON.stringify({ ...document, [field]: other }))
    : undefined;
}

const found = (text: string, filledWith: Found["filledWith"]): Found | undefined =>
  text.startsWith(MARK) ? { reference: text.slice(MARK.length), filledWith } : undefined;

/** Undefined for what is damaged: whoever reads it says so. */
function parsed(plaintext: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(plaintext) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

export const holdsReference = (name: string, plaintext: string): boolean =>
  findReference(name, plaintext) !== undefined;

/** The secret, with what its reference leads to. */
export async function followReference(
  name: string,
  plaintext: string,
  references: SecretReferences | undefined,
): Promise<string | AppError> {
  const held = findReference(name, plaintext);
  if (held === undefined) return plaintext;
  if (references === undefined)
    return new AppError(
      "failed_precondition",
      `secret ${name} is kept elsewhere, and this server follows no references`,
    );
  const value = await references.resolve(held.reference);
  return typeof value === "string" ? held.filledWith(value) : value;
}
