import type { AppError } from "../../kernel/errors.ts";

/** Places outside of the database where a credential may be kept. */
const KINDS = ["env", "file", "vault"] as const;
export type ReferenceKind = (typeof KINDS)[number];

export interface SecretReference {
  readonly kind: ReferenceKind;
  /** What follows the kind: a name, a path, or a path and a field. */
  readonly at: string;
}

/** `env:NAME`, `file:/path` or `vault:mount/path#field`; undefined: a value. */
export function parseReference(text: string): SecretReference | undefined {
  const kind = KINDS.find((word) => text.startsWith(`${word}:`));
  return kind && { kind, at: text.slice(kind.length + 1) };
}

/** Reads what is kept elsewhere. */
export interface SecretReferences {
  /** What it holds, or why it cannot be read. The error names the reference, never what it holds. */
  resolve(reference: string): Promise<string | AppError>;
}
