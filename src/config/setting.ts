import type { Host } from "./data-dir.ts";
import type * as kinds from "./value-kinds.ts";

type Raw = string | number | boolean | readonly string[] | Readonly<Record<string, never>>;

interface Details<Default> {
  readonly doc: string;
  /** As one would write it in a file. */
  readonly default: Default;
  /** What `millwright dev` takes instead. */
  readonly dev?: Raw;
  /** Shown in place of a default that depends on the machine. */
  readonly defaultDoc?: string;
  /** Never printed whole. */
  readonly secret?: boolean;
}

export type DefaultOf = (host: Host, env: Readonly<Record<string, string | undefined>>) => string;

export interface Setting<T> extends Details<Raw | DefaultOf | null> {
  readonly kind: kinds.ValueKind<T>;
}

export const setting = <T>(kind: kinds.ValueKind<T>, details: Details<Raw | DefaultOf>): Setting<T> => ({
  kind,
  ...details,
});

/** Unset unless somebody sets it; then `null` in the config. */
export const optional = <T>(kind: kinds.ValueKind<T>, details: Omit<Details<null>, "default">): Setting<T | null> => ({
  kind: kind as kinds.ValueKind<T | null>,
  default: null,
  ...details,
});
