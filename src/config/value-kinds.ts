import { isIP } from "node:net";
import { z } from "zod";
import { parseDatabaseUrl } from "../kernel/places/database-url.ts";
import { type Duration, milliseconds } from "../kernel/time/duration.ts";
import { ROLES, type Role } from "../services/call/roles.ts";
import { type Network, parseNetwork } from "./networks.ts";

/**
 * What a setting may hold. The environment and flags give text, a file gives numbers and lists: a kind takes both.
 *
 * `rule` completes "must be …" in errors and in the reference.
 */
export interface ValueKind<T> {
  readonly schema: z.ZodType<T>;
  readonly rule: string;
  /** Several flags of this kind add up, joined by commas. */
  readonly repeatable?: boolean;
  /** A path is relative to the config file that says it, else to the working directory. Absent: anything else. */
  readonly takes?: "switch" | "file" | "directory";
  /** The only values. */
  readonly words?: readonly string[];
}

function kind<T>(
  rule: string,
  parse: (raw: unknown) => T | undefined,
  traits: Omit<ValueKind<T>, "schema" | "rule"> = {},
): ValueKind<T> {
  const schema = z.unknown().transform((raw, context): T => {
    const value = parse(raw);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: rule });
    return z.NEVER;
  });
  return { schema, rule, ...traits };
}

const trimmed = (raw: unknown): string | undefined =>
  typeof raw === "string" && raw.trim() !== "" ? raw.trim() : undefined;

const numeric = (raw: unknown): number | undefined => {
  if (typeof raw === "number") return Number.isFinite(raw) ? raw : undefined;
  const text = trimmed(raw);
  return text !== undefined && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
};

const between = (value: number | undefined, min: number, max: number): number | undefined =>
  value !== undefined && value >= min && value <= max ? value : undefined;

export const text = (rule = "text"): ValueKind<string> => kind(rule, trimmed);

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/;
export const name = (): ValueKind<string> =>
  kind("a name of up to 64 letters, digits and . _ : -, such as 2026-03-01", (raw) => {
    const value = trimmed(raw);
    return value !== undefined && NAME.test(value) ? value : undefined;
  });

export const path = (takes: "file" | "directory" = "file"): ValueKind<string> =>
  kind(`the path of a ${takes}`, trimmed, { takes });

export const isPath = ({ takes }: ValueKind<unknown>): boolean => takes === "file" || takes === "directory";

export const integer = (min: number, max: number): ValueKind<number> =>
  kind(`a whole number from ${min} to ${max}`, (raw) => {
    const value = between(numeric(raw), min, max);
    return Number.isInteger(value) ? value : undefined;
  });

export const factor = (min: number, max: number): ValueKind<number> =>
  kind(`a number from ${min} to ${max}`, (raw) => between(numeric(raw), min, max));

export const flag = (): ValueKind<boolean> =>
  kind(
    "true or false",
    (raw) => (raw === true || raw === "true" ? true : raw === false || raw === "false" ? false : undefined),
    { takes: "switch" },
  );

export function choice<const T extends readonly string[]>(words: T): ValueKind<T[number]> {
  return kind(
    `one of ${words.join(", ")}`,
    (raw): T[number] | undefined => words.find((word) => word === trimmed(raw)),
    { words },
  );
}

/** Several of the words, or none. */
export function choices<const T extends readonly string[]>(words: T): ValueKind<readonly T[number][]> {
  return kind(
    `a list of ${words.join(", ")}, separated by commas`,
    (raw) => {
      const parts = typeof raw === "string" ? raw.split(",") : raw;
      if (!Array.isArray(parts)) return undefined;
      const known = parts.filter((part) => part !== "").map((part) => words.find((word) => word === trimmed(part)));
      return known.includes(undefined) ? undefined : known.filter((word): word is T[number] => word !== undefined);
    },
    { repeatable: true },
  );
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function parseDuration(raw: unknown): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(trimmed(raw) ?? "");
  return match ? Number(match[1]) * (UNITS[match[2] ?? ""] ?? Number.NaN) : undefined;
}

/** Always with its unit: a bare `15` would leave everybody guessing. */
export const duration = (min: string, max: string): ValueKind<Duration> =>
  kind(`a duration with its unit (ms, s, m, h or d) from ${min} to ${max}`, (raw) => {
    const value = between(parseDuration(raw), parseDuration(min) ?? 0, parseDuration(max) ?? 0);
    return value === undefined ? undefined : milliseconds(Math.round(value));
  });

/** Null where it is off. */
export const durationOrOff = (min: string, max: string): ValueKind<Duration | null> =>
  kind(`a duration with its unit (ms, s, m, h or d) from ${min} to ${max}, or off`, (raw) => {
    if (trimmed(raw) === "off" || raw === false) return null;
    const value = between(parseDuration(raw), parseDuration(min) ?? 0, parseDuration(max) ?? 0);
    return value === undefined ? undefined : milliseconds(Math.round(value));
  });

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

function parseListen(raw: unknown): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(trimmed(raw) ?? "");
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535 || (match?.[1] !== undefined && isIP(host) !== 6)) return undefined;
  return { host, port };
}

export const listenAddress = (): ValueKind<ListenAddress> =>
  kind("host:port, such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:8080; port 0 takes a free one", parseListen);

export const url = (protocols: readonly string[]): ValueKind<string> =>
  kind(`a URL that starts with ${protocols.map((protocol) => `${protocol}://`).join(" or ")}`, (raw) => {
    const candidate = trimmed(raw) ?? "";
    return protocols.some((protocol) => candidate.startsWith(`${protocol}://`)) && URL.canParse(candidate)
      ? candidate
      : undefined;
  });

export const databaseUrl = (): ValueKind<string> =>
  kind(
    "a URL that starts with postgres:// or postgresql://, whose target_session_attrs is any, primary or read-write",
    (raw) => {
      const candidate = trimmed(raw) ?? "";
      return parseDatabaseUrl(candidate) === undefined ? undefined : candidate;
    },
  );

/** What other addresses are put behind: without a slash at its end. */
export const baseUrl = (): ValueKind<string> =>
  kind("a URL that starts with http:// or https://, with neither blanks nor a query", (raw) => {
    const candidate = (trimmed(raw) ?? "").replace(/\/+$/, "");
    return /^https?:\/\/[\x21\x24-\x3e\x40-\x7e]+$/.test(candidate) && URL.canParse(candidate) ? candidate : undefined;
  });

/** Entries of one form, in small letters, separated by commas. */
const wordList = (rule: string, form: RegExp): ValueKind<readonly string[]> =>
  kind(
    rule,
    (raw) => {
      const parts = typeof raw === "string" ? raw.split(",") : raw;
      if (!Array.isArray(parts)) return undefined;
      const words = parts.filter((part) => part !== "").map((part) => trimmed(part)?.toLowerCase() ?? "");
      return words.every((word) => form.test(word)) ? words : undefined;
    },
    { repeatable: true },
  );

/** Entries separated by commas, as they are. */
const entries = (rule: string, form: RegExp): ValueKind<readonly string[]> =>
  kind(
    rule,
    (raw) => {
      const parts = typeof raw === "string" ? raw.split(",") : raw;
      if (!Array.isArray(parts)) return undefined;
      const words = parts.filter((part) => part !== "").map((part) => (trimmed(part) ?? "").replace(/(?<=.)\/+$/, ""));
      return words.every((word) => form.test(word) && !word.split("/").some((part) => part === "." || part === ".."))
        ? words
        : undefined;
    },
    { repeatable: true },
  );

export const directories = (): ValueKind<readonly string[]> =>
  entries("a list of absolute paths of directories, separated by commas", /^\/(?!$)[^\0]+$/);

export const vaultPaths = (): ValueKind<readonly string[]> =>
  entries(
    "a list of paths such as secret/bmc, separated by commas: the mount of a KV store, and what is below it",
    /^[A-Za-z0-9_-]+(\/[A-Za-z0-9_.-]+)*$/,
  );

/** What the server itself is given as a secret. */
const OWN_SECRETS = ["MILLWRIGHT_DATABASE_URL", "MILLWRIGHT_AUTH_TOKENS"];

/** Long enough not to be everybody's. */
export const prefix = (): ValueKind<string> =>
  kind(
    "the beginning of a variable's name, of at least 3 letters, digits and underscores; no setting may begin so; empty for none",
    (raw) =>
      typeof raw === "string" &&
      /^([A-Za-z_][A-Za-z0-9_]{2,})?$/.test(raw.trim()) &&
      (raw.trim() === "" || !OWN_SECRETS.some((name) => name.startsWith(raw.trim())))
        ? raw.trim()
        : undefined,
  );

export const hostNames = (): ValueKind<readonly string[]> =>
  wordList(
    "a list of host names without ports, separated by commas: mw.example, *.example for all names below, or * for any",
    /^(\*|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*)$/,
  );

export const webOrigins = (): ValueKind<readonly string[]> =>
  wordList(
    "a list of origins such as https://mw.example, separated by commas, or * for any",
    /^(\*|https?:\/\/(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:\d{1,5})?)$/,
  );

/** It becomes a word of a boot script. */
export const bootLocation = (): ValueKind<string> =>
  kind("a path of this server (/files/…) or a URL (http, https, tftp), without blanks", (raw) => {
    const candidate = trimmed(raw) ?? "";
    return /^(\/|(https?|tftp):\/\/)[\x21-\x7e]+$/.test(candidate) ? candidate : undefined;
  });

export const networks = (): ValueKind<readonly Network[]> =>
  kind(
    "a list of networks such as 10.20.0.0/16 or fd00:20::/32, separated by commas",
    (raw) => {
      const parts = typeof raw === "string" ? raw.split(",") : raw;
      if (!Array.isArray(parts)) return undefined;
      const parsed = parts
        .filter((part) => part !== "")
        .map((part) => (typeof part === "string" ? parseNetwork(part) : undefined));
      return parsed.includes(undefined) ? undefined : parsed.filter((network) => network !== undefined);
    },
    { repeatable: true },
  );

const roleNames = z.array(z.enum(ROLES)).min(1);

/** Structured values are given as JSON where only text can be given. */
function structured<T>(rule: string, schema: z.ZodType<T>): ValueKind<T> {
  return kind(rule, (raw) => {
    let value = raw;
    if (typeof raw === "string") {
      try {
        value = JSON.parse(raw);
      } catch {
        return undefined;
      }
    }
    return schema.safeParse(value).data;
  });
}

export type RoleMapping = Readonly<Record<string, readonly Role[]>>;

export const roleMapping = (what: string): ValueKind<RoleMapping> =>
  structured(
    `an object from ${what} to a list of roles (${ROLES.join(", ")}); JSON outside of a file`,
    z.record(z.string().min(1), roleNames),
  );

export interface StaticToken {
  readonly name: string;
  readonly roles: readonly Role[];
  /** Of the whole token, lower-case hex. */
  readonly sha256: string;
}

export const staticTokens = (): ValueKind<readonly StaticToken[]> =>
  structured(
    `a list of {name, roles, sha256}: sha256 is that of the whole token in lower-case hex, roles are of ${ROLES.join(", ")}; JSON outside of a file`,
    z.array(z.strictObject({ name: z.string().min(1), roles: roleNames, sha256: z.string().regex(/^[0-9a-f]{64}$/) })),
  );
