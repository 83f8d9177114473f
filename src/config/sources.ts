import { dirname, resolve } from "node:path";
import { isMap, isScalar, LineCounter, type Pair, parseDocument, type YAMLMap } from "yaml";
import { messageOf } from "../kernel/errors.ts";
import { suggestion } from "./closest.ts";
import {
  envName,
  flagName,
  isSettingKey,
  OTHER_VARIABLES,
  SETTING_KEYS,
  type SettingKey,
  settingFor,
} from "./settings.ts";

/** A value that somebody gave, before it is judged. */
export interface Given {
  readonly key: SettingKey;
  readonly value: unknown;
  /** For people: "environment MILLWRIGHT_DATA_DIR", "file /etc/millwright.yaml:3". */
  readonly source: string;
  /** What a relative path in it is relative to. */
  readonly base: string;
}

/** What one source gives, and what is wrong with it. Problems are collected, so that all typos are shown at once. */
export interface Gathered {
  readonly given: readonly Given[];
  readonly problems: readonly string[];
}

/**
 * Kubernetes adds such variables to every container for each Service of the namespace; one of them is likely named `millwright`.
 * They look like ours and are not.
 */
function isServiceLink(name: string, value: string): boolean {
  if (/_SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?$/.test(name)) return true;
  return (
    /_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$/.test(name) &&
    (/_\d+_/.test(name) || /^(tcp|udp|sctp):\/\//.test(value))
  );
}

export function fromEnvironment(env: Readonly<Record<string, string | undefined>>, cwd: string): Gathered {
  const keyOf = new Map(SETTING_KEYS.map((key) => [envName(key), key]));
  const known = [...keyOf.keys(), ...Object.keys(OTHER_VARIABLES)];
  const given: Given[] = [];
  const problems: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    // An empty variable counts as unset: that is how compose files and unit files pass "nothing".
    if (!name.startsWith("MILLWRIGHT_") || value === undefined || value === "") continue;
    const key = keyOf.get(name);
    if (key !== undefined) given.push({ key, value, source: `environment ${name}`, base: cwd });
    else if (!Object.hasOwn(OTHER_VARIABLES, name) && !isServiceLink(name, value)) {
      problems.push(`environment: unknown variable "${name}"${suggestion(name, known)}`);
    }
  }
  return { given, problems };
}

export interface FlagsGathered extends Gathered {
  /** Of `--config`. */
  readonly configFile: string | undefined;
}

/** Splits `--a=b`, `--a b`, and `--a` alone for what is true or false. */
function splitFlags(
  argv: readonly string[],
  isSwitch: (name: string) => boolean,
): { pairs: [string, string][]; problems: string[] } {
  const pairs: [string, string][] = [];
  const problems: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    if (!word.startsWith("--")) {
      problems.push(`unexpected argument "${word}": settings are given as --name value`);
      continue;
    }
    const equals = word.indexOf("=");
    const name = equals === -1 ? word : word.slice(0, equals);
    const next = argv[index + 1];
    if (equals !== -1) pairs.push([name, word.slice(equals + 1)]);
    else if (next !== undefined && !next.startsWith("--") && (!isSwitch(name) || next === "true" || next === "false")) {
      pairs.push([name, next]);
      index++;
    } else if (isSwitch(name)) pairs.push([name, "true"]);
    else pairs.push([name, ""]);
  }
  return { pairs, problems };
}

export function fromFlags(argv: readonly string[], cwd: string): FlagsGathered {
  const keyOf = new Map(SETTING_KEYS.map((key) => [flagName(key), key]));
  const isSwitch = (name: string) => {
    const key = keyOf.get(name);
    return key !== undefined && typeof settingFor(key).default === "boolean";
  };
  const { pairs, problems } = splitFlags(argv, isSwitch);
  const values = new Map<SettingKey, string>();
  let configFile: string | undefined;
  for (const [name, value] of pairs) {
    const key = keyOf.get(name);
    const earlier = key === undefined ? undefined : values.get(key);
    if (key === undefined && name !== "--config") {
      problems.push(`unknown flag "${name}"${suggestion(name, [...keyOf.keys(), "--config"])}`);
    } else if (value === "") problems.push(`flag ${name} needs a value`);
    else if (key === undefined) configFile = value;
    else if (earlier === undefined) values.set(key, value);
    else if (settingFor(key).kind.repeatable) values.set(key, `${earlier},${value}`);
    else problems.push(`flag ${name} is given twice`);
  }
  const given = [...values].map(([key, value]): Given => ({ key, value, source: `flag ${flagName(key)}`, base: cwd }));
  return { given, problems, configFile };
}

/** What stands before the dots: auth, auth.oidc, http. */
const GROUPS = [
  ...new Set(
    SETTING_KEYS.flatMap((key) => {
      const parts = key.split(".");
      return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("."));
    }),
  ),
];

/** A YAML 1.2 document; JSON is one too. Keys may be nested or dotted. */
function fromFile(path: string, content: string): Gathered {
  const lines = new LineCounter();
  const document = parseDocument(content, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number | undefined) => (offset === undefined ? path : `${path}:${lines.linePos(offset).line}`);
  if (document.errors.length > 0) {
    return { given: [], problems: document.errors.map((error) => `file ${at(error.pos[0])}: ${error.message}`) };
  }
  const root = document.contents;
  if (root === null || (isScalar(root) && root.value === null)) return { given: [], problems: [] };
  if (!isMap(root)) return { given: [], problems: [`file ${path}: must be an object of settings`] };

  const given = new Map<SettingKey, Given>();
  const problems: string[] = [];
  const visit = (map: YAMLMap, prefix: string) => {
    for (const pair of map.items as Pair[]) {
      const keyNode = isScalar(pair.key) ? pair.key : undefined;
      const key = `${prefix}${String(keyNode?.value)}`;
      const where = at(keyNode?.range?.[0]);
      if (isSettingKey(key)) {
        const value = pair.value === null ? null : (pair.value as { toJS(doc: unknown): unknown }).toJS(document);
        if (given.has(key)) problems.push(`file ${where}: "${key}" is given twice`);
        // `key:` with nothing behind it leaves the setting as it was.
        else if (value !== null) given.set(key, { key, value, source: `file ${where}`, base: dirname(resolve(path)) });
      } else if (SETTING_KEYS.some((known) => known.startsWith(`${key}.`))) {
        if (isMap(pair.value)) visit(pair.value, `${key}.`);
        else if (!(pair.value === null || (isScalar(pair.value) && pair.value.value === null))) {
          problems.push(`file ${where}: "${key}" must be an object of settings`);
        }
      } else problems.push(`file ${where}: unknown key "${key}"${suggestion(key, [...GROUPS, ...SETTING_KEYS])}`);
    }
  };
  visit(root, "");
  return { given: [...given.values()], problems };
}

export function readConfigFile(path: string, readFile: (path: string) => string): Gathered {
  let content: string;
  try {
    content = readFile(path);
  } catch (error) {
    return { given: [], problems: [`file ${path}: cannot be read: ${messageOf(error)}`] };
  }
  return fromFile(path, content);
}
