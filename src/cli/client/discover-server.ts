import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import { CliError, EXIT, UsageError } from "./errors.ts";

export interface Endpoint {
  /** HTTP base URL, without a slash at its end. */
  readonly url: string;
  readonly token: string | undefined;
}

export interface DiscoveryOptions {
  readonly server?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly dataDir?: string;
}

interface User {
  readonly uid: number;
  /** Of the password database; it is there with an empty environment too. */
  readonly homedir: string | undefined;
}

interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads a text file; undefined when there is none. */
  readFile(path: string): string | undefined;
  user(): User;
}

/**
 * Which server to talk to, and as whom: flags, then environment, then the data directory of a local server.
 *
 * The dev token is only ever sent to the server that wrote it: naming another server must not hand it the key to this one.
 */
export function discoverServer(options: DiscoveryOptions, { env, readFile, user }: Surroundings): Endpoint {
  const named = options.server ?? nonEmpty(env.MILLWRIGHT_SERVER);
  const url =
    named === undefined
      ? undefined
      : parseServer(named, options.server === undefined ? "MILLWRIGHT_SERVER" : "--server");
  const token = givenToken(options, env, readFile);
  if (url !== undefined && token !== undefined) return { url, token };

  const dataDir = options.dataDir ?? nonEmpty(env.MILLWRIGHT_DATA_DIR) ?? defaultDataDir(env, user());
  const local = readLocalEndpoint(dataDir, readFile);
  if (url === undefined && local === undefined) {
    throw new CliError(
      EXIT.unavailable,
      `no server is running here (there is no ${join(dataDir, "endpoints.json")})`,
      "start one with `npm start` or `millwright dev`, or name one with --server or MILLWRIGHT_SERVER",
    );
  }
  const chosen = url ?? local ?? "";
  const devToken = chosen === local ? nonEmpty(readFile(join(dataDir, "dev-token"))?.trim()) : undefined;
  return { url: chosen, token: token ?? devToken };
}

/** Where a local server keeps its data, unless told otherwise: the rules of the server's own `data_dir`. */
export function defaultDataDir(env: Surroundings["env"], user: User): string {
  if (user.uid === 0) return "/var/lib/millwright";
  const { XDG_STATE_HOME: state, HOME: home } = env;
  if (state !== undefined && isAbsolute(state)) return join(state, "millwright");
  const base = home !== undefined && isAbsolute(home) ? home : user.homedir;
  if (base === undefined) {
    throw new UsageError(
      "this user has no home directory, so the data directory of a local server is unknown",
      "give --data-dir or MILLWRIGHT_DATA_DIR, or name the server with --server",
    );
  }
  return join(base, ".local", "state", "millwright");
}

/** The outside as it is. */
export const surroundings = (env: Surroundings["env"]): Surroundings => ({
  env,
  readFile: readTextFile,
  user: () => {
    try {
      return userInfo();
    } catch {
      // Containers run users that the password database does not have.
      return { uid: process.getuid?.() ?? -1, homedir: undefined };
    }
  },
});

export function readTextFile(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    if (code === "EACCES" || code === "EPERM") {
      throw new CliError(
        EXIT.denied,
        `${path} cannot be read by this user`,
        "run as the user that started the server, or give --server and --token-file",
      );
    }
    throw new UsageError(`${path} cannot be read (${String(code)})`);
  }
}

const nonEmpty = (text: string | undefined): string | undefined =>
  text === undefined || text === "" ? undefined : text;

function givenToken(
  options: DiscoveryOptions,
  env: Surroundings["env"],
  readFile: Surroundings["readFile"],
): string | undefined {
  if (options.token !== undefined && options.tokenFile !== undefined) {
    throw new UsageError("--token and --token-file exclude each other");
  }
  if (options.tokenFile !== undefined) {
    const text = readFile(options.tokenFile);
    if (text === undefined) throw new UsageError(`--token-file: ${options.tokenFile} does not exist`);
    const token = text.trim();
    if (token === "") throw new UsageError(`--token-file: ${options.tokenFile} is empty`);
    return checkedToken(token, "--token-file");
  }
  if (options.token !== undefined) return checkedToken(options.token, "--token");
  const fromEnvironment = nonEmpty(env.MILLWRIGHT_TOKEN);
  return fromEnvironment === undefined ? undefined : checkedToken(fromEnvironment, "MILLWRIGHT_TOKEN");
}

/** A token goes into a header; what cannot be there is refused without repeating it. */
function checkedToken(token: string, field: string): string {
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new UsageError(`${field}: a token is one line of visible ASCII characters without spaces`);
  return token;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** A base URL; without a scheme, loopback is taken as http and everything else as https. */
export function parseServer(text: string, field: string): string {
  const wrong = () =>
    new UsageError(
      `${field}: ${JSON.stringify(text)} is not an HTTP address (like http://127.0.0.1:8080 or https://millwright.example.com)`,
    );
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  let url: URL;
  try {
    url = new URL(hasScheme ? text : `http://${text}`);
  } catch {
    throw wrong();
  }
  // Not repeated in the message: what stands before the @ is a secret.
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(
      `${field}: the address must not hold a user name or password`,
      "give the token with --token-file or MILLWRIGHT_TOKEN",
    );
  }
  if (!["http:", "https:"].includes(url.protocol) || url.hostname === "" || url.search !== "" || url.hash !== "")
    throw wrong();
  const protocol = hasScheme || LOOPBACK.test(url.hostname) ? url.protocol : "https:";
  const path = url.pathname.replace(/\/+$/, "");
  return `${protocol}//${url.host}${path}`;
}

function readLocalEndpoint(dataDir: string, readFile: Surroundings["readFile"]): string | undefined {
  const path = join(dataDir, "endpoints.json");
  const text = readFile(path);
  if (text === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && "http" in parsed && typeof parsed.http === "string") {
      return parseServer(parsed.http, path);
    }
  } catch (error) {
    if (error instanceof CliError) throw error;
  }
  throw new CliError(
    EXIT.unavailable,
    `${path} does not say where the server is`,
    "start the server again, or name it with --server",
  );
}
