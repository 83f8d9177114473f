import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { userInfo } from "node:os";
import { resolve } from "node:path";
import type { z } from "zod";
import { AppError } from "../kernel/errors.ts";
import { isRole } from "../services/call/roles.ts";
import type { Host } from "./data-dir.ts";
import { API_LISTENERS, listenerMistakes, listenerWarnings, openListeners } from "./listeners.ts";
import { isLoopback } from "./networks.ts";
import { SETTING_KEYS, type SETTINGS, type SettingKey, settingFor } from "./settings.ts";
import { fromEnvironment, fromFlags, type Given, readConfigFile } from "./sources.ts";
import { isPath } from "./value-kinds.ts";

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;
type Nested<K extends string, V> = K extends `${infer Head}.${infer Tail}`
  ? { readonly [P in Camel<Head>]: Nested<Tail, V> }
  : { readonly [P in Camel<K>]: V };
type Intersection<U> = (U extends unknown ? (part: U) => void : never) extends (whole: infer I) => void ? I : never;
type Flattened<T> = T extends readonly unknown[] ? T : { [K in keyof T]: T[K] };
type ValueOf<K extends SettingKey> = z.output<(typeof SETTINGS)[K]["kind"]["schema"]>;

/** `auth.oidc.jwks_url` of the table is `config.auth.oidc.jwksUrl`. */
export type Config = Flattened<Intersection<{ [K in SettingKey]: Nested<K, ValueOf<K>> }[SettingKey]>>;

/** Which defaults hold; `dev` brings its own simulated datacentre, so it may call loopback and runs faster than life. */
export type Profile = "dev" | "serve";

export interface EffectiveSetting {
  readonly key: SettingKey;
  readonly value: unknown;
  /** As it was given; for display. */
  readonly raw: unknown;
  readonly source: string;
}

export interface LoadedConfig {
  readonly config: Config;
  readonly settings: readonly EffectiveSetting[];
  /** Allowed, yet probably not wanted. */
  readonly warnings: readonly string[];
}

export interface LoadOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What follows the command's name. */
  readonly argv: readonly string[];
  readonly profile?: Profile;
  readonly readFile?: (path: string) => string;
  readonly host?: Host;
}

function thisHost(): Host {
  const cwd = process.cwd();
  try {
    const { uid, homedir } = userInfo();
    return { uid, homedir, cwd };
  } catch {
    // Containers run under user ids that no password database knows.
    return { uid: process.getuid?.() ?? -1, homedir: null, cwd };
  }
}

/**
 * Defaults ← file ← environment ← flags. Throws one `AppError` that lists everything that is wrong, each with the place it was
 * given at, and takes nothing over in part.
 */
export function loadConfig(options: LoadOptions): LoadedConfig {
  const { env, argv, profile = "serve", readFile = (path) => readFileSync(path, "utf8"), host = thisHost() } = options;
  const flags = fromFlags(argv, host.cwd);
  const environment = fromEnvironment(env, host.cwd);
  const file = flags.configFile ?? (env.MILLWRIGHT_CONFIG || undefined);
  const fromDisk = file === undefined ? { given: [], problems: [] } : readConfigFile(resolve(host.cwd, file), readFile);

  const problems = [...flags.problems, ...environment.problems, ...fromDisk.problems];
  const winning = new Map<SettingKey, Given>();
  for (const given of [...fromDisk.given, ...environment.given, ...flags.given]) winning.set(given.key, given);

  const settings = SETTING_KEYS.map((key): EffectiveSetting => {
    const given = winning.get(key);
    const effective = given ? settingFrom(given) : defaultOf(key, profile, host, env);
    if ("problem" in effective) problems.push(effective.problem);
    return "problem" in effective ? { key, value: null, raw: null, source: "" } : effective;
  });
  if (problems.length > 0) throw refusal(problems);

  const config = assemble(settings);
  const { mistakes, warnings } = checkTogether(config, profile);
  if (mistakes.length > 0) throw refusal(mistakes);
  return { config, settings, warnings };
}

function settingFrom(given: Given): EffectiveSetting | { problem: string } {
  const { key, value, source, base } = given;
  const { kind, secret } = settingFor(key);
  const result = kind.schema.safeParse(value);
  if (!result.success) {
    const shown = secret ? "has a value that is not valid" : `is ${JSON.stringify(value)}`;
    return { problem: `${key} (${source}) ${shown}: must be ${kind.rule}` };
  }
  const parsed = isPath(kind) ? resolve(base, String(result.data)) : result.data;
  return { key, value: parsed, raw: isPath(kind) ? parsed : value, source };
}

function defaultOf(key: SettingKey, profile: Profile, host: Host, env: LoadOptions["env"]): EffectiveSetting {
  const { kind, default: ordinary, dev } = settingFor(key);
  const special = profile === "dev" && dev !== undefined;
  const declared = special ? dev : ordinary;
  const raw = typeof declared === "function" ? declared(host, env) : declared;
  return {
    key,
    value: raw === null ? null : kind.schema.parse(raw),
    raw,
    source: special ? "default of dev" : "default",
  };
}

const camel = (word: string): string => word.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

function assemble(settings: readonly EffectiveSetting[]): Config {
  const root: Record<string, unknown> = {};
  for (const { key, value } of settings) {
    const path = key.split(".").map(camel);
    const leaf = path.pop() ?? key;
    let at = root;
    for (const part of path) {
      at[part] ??= {};
      at = at[part] as Record<string, unknown>;
    }
    at[leaf] = value;
  }
  // The table's types say what each leaf is; the shape follows from its keys by the same rule as the type.
  return root as unknown as Config;
}

/** Rules over more than one setting. */
function checkTogether(config: Config, profile: Profile): { mistakes: string[]; warnings: string[] } {
  const { auth, tls, http } = config;
  const mistakes: string[] = [];
  const warnings: string[] = [];
  const open = openListeners(config, API_LISTENERS);
  const names = open.join(" and ");
  mistakes.push(...listenerMistakes(config));
  warnings.push(...listenerWarnings(config));
  if ((tls.certFile === null) !== (tls.keyFile === null)) {
    mistakes.push(
      `tls.cert_file and tls.key_file belong together: ${tls.certFile === null ? "tls.cert_file" : "tls.key_file"} is missing`,
    );
  }
  if (tls.clientCaFile !== null && tls.certFile === null)
    mistakes.push("tls.client_ca_file needs tls.cert_file and tls.key_file");
  if (Object.keys(auth.mtls.roles).length > 0 && tls.clientCaFile === null)
    mistakes.push("auth.mtls.roles needs tls.client_ca_file");
  mistakes.push(...oidcMistakes(auth.oidc), ...rackManagerMistakes(config.rackManager, profile));
  mistakes.push(...allocatorMistakes(config.fleet.allocator));
  warnings.push(...oidcWarnings(auth.oidc));
  if (!isLoopback(http.listen.host) && tls.certFile === null && namesOf(config).length === 0) {
    warnings.push(
      `http.listen is on ${http.listen.host} and http.allowed_hosts is empty: callers that name this server by anything but an IP address are refused`,
    );
  }
  if (open.length > 0 && tls.certFile === null) {
    warnings.push(`${names} without TLS: tokens cross the network readable, unless a proxy in front adds TLS`);
  }
  warnings.push(...limitWarnings(config.limits));
  return { mistakes, warnings };
}

function limitWarnings({ connections, connectionsPerAddress }: Config["limits"]): string[] {
  if (connectionsPerAddress < connections) return [];
  return [
    `limits.connections_per_address (${connectionsPerAddress}) is not below limits.connections (${connections}): one address can take all places of a listener`,
  ];
}

/**
 * The two numberings give the same number opposite meanings (ON and OFF), so that none may be guessed. It is told the credentials of BMCs:
 * they go unencrypted only to one on this host, and only in development.
 */
function rackManagerMistakes({ url, api, certFile, keyFile }: Config["rackManager"], profile: Profile): string[] {
  const isPlain = url !== null && new URL(url).protocol === "http:";
  const mayBePlain = profile === "dev" && url !== null && isLoopback(new URL(url).hostname);
  return [
    ...(isPlain && !mayBePlain
      ? ["rack_manager.url must begin with https: the rack manager is told the credentials of BMCs"]
      : []),
    ...(url !== null && api === null ? ["rack_manager.url needs rack_manager.api: d or h"] : []),
    ...((certFile === null) === (keyFile === null)
      ? []
      : ["rack_manager.cert_file and rack_manager.key_file belong together"]),
  ];
}

/** It is sent a token, which others on the way could read. */
function allocatorMistakes({ url, tokenFile }: Config["fleet"]["allocator"]): string[] {
  const place = url === null ? undefined : new URL(url);
  return [
    ...(place?.protocol === "http:" && !isLoopback(place.hostname)
      ? ["fleet.allocator.url must begin with https: the allocator is sent a token"]
      : []),
    ...((url === null) === (tokenFile === null)
      ? []
      : ["fleet.allocator.url and fleet.allocator.token_file belong together"]),
  ];
}

function oidcMistakes(oidc: Config["auth"]["oidc"]): string[] {
  const keys = [oidc.jwksUrl, oidc.jwksFile].filter((source) => source !== null).length;
  if (oidc.issuer === null) {
    return keys > 0 || oidc.audience !== null || oidc.clientId !== null
      ? ["auth.oidc.issuer is missing: the other auth.oidc settings do nothing without it"]
      : [];
  }
  const mistakes: string[] = [];
  if (oidc.audience === null)
    mistakes.push("auth.oidc.audience is missing: without it tokens made for other services would be accepted");
  if (oidc.clientId === null && oidc.clientSecretFile !== null)
    mistakes.push("auth.oidc.client_id is missing: auth.oidc.client_secret_file does nothing without it");
  if (!oidc.scopes.split(" ").includes("openid"))
    mistakes.push("auth.oidc.scopes must have openid among them: without it the issuer does not say who signed in");
  if (keys !== 1) mistakes.push("auth.oidc needs exactly one of auth.oidc.jwks_url and auth.oidc.jwks_file");
  return mistakes;
}

/** The names that the configuration gives the server: those that callers may have for it, beside those in its certificate. */
export function namesOf({ http, install, firmware, fleet, bmc }: Config): readonly string[] {
  const urls = [install.publicUrl, firmware.publicUrl, fleet.publicUrl, bmc.publicUrl].filter((url) => url !== null);
  const hosts = urls.map((url) => new URL(url).hostname).filter((host) => isIP(host.replace(/^\[|\]$/g, "")) === 0);
  return [...http.allowedHosts, ...hosts];
}

/** Said for a mapping alone that names no role of its own: whoever wrote it may have counted on names that stood for themselves. */
function oidcWarnings({ issuer, roles }: Config["auth"]["oidc"]): string[] {
  const values = Object.keys(roles);
  if (issuer === null || values.length === 0 || values.some(isRole)) return [];
  return [
    `auth.oidc.roles maps ${values.length} value${values.length === 1 ? "" : "s"} of the roles claim, so that names of roles in the claim give nothing: where they shall, map them to themselves, as {"operator": ["operator"]}`,
  ];
}

function refusal(problems: readonly string[]): AppError {
  const [only] = problems;
  const message =
    problems.length === 1 && only !== undefined
      ? only
      : `the configuration has ${problems.length} mistakes:\n- ${problems.join("\n- ")}`;
  return new AppError("invalid_argument", message, { next: "millwright config check" });
}
