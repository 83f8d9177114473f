import { readFileSync } from "node:fs";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import { LONGEST_SECRET } from "./file.ts";
import { refusedReference } from "./refused-reference.ts";

export interface VaultSettings {
  readonly url: string;
  readonly paths: readonly string[];
  /** One of the two ways to sign in: a file with a token, read each time, since its owner renews it; or an AppRole. */
  readonly tokenFile: string | null;
  readonly roleId: string | null;
  readonly secretIdFile: string | null;
  readonly caCertificates?: readonly string[];
}

export interface Vault {
  read(at: string): Promise<string>;
}

/** Who waits for a credential waits no longer than this for a Vault that hangs. */
const LONGEST_WAIT: Duration = seconds(3);
/** A token is given up before its lease ends. */
const SHARE_OF_LEASE = 0.8;
const PLACE = /^([A-Za-z0-9_-]+)\/([A-Za-z0-9_.-]+(?:\/[A-Za-z0-9_.-]+)*)#([A-Za-z0-9_.-]+)$/;

/** The KV store, version 2, of a Vault: `mount/path#field`. */
export function createVault(settings: VaultSettings, clock: Pick<Clock, "monotonic">): Vault {
  let signedIn: { readonly token: string; readonly until: number } | undefined;

  async function signIn(): Promise<string> {
    const { tokenFile, roleId, secretIdFile } = settings;
    if (tokenFile !== null) return readOneLine(tokenFile, "secrets.vault_token_file");
    if (signedIn && clock.monotonic() < signedIn.until) return signedIn.token;
    const body = { role_id: roleId, secret_id: readOneLine(secretIdFile ?? "", "secrets.vault_secret_id_file") };
    const answer = await call("POST", "auth/approle/login", undefined, body);
    const { client_token: token, lease_duration: lease } = (answer.json as LoginAnswer | null)?.auth ?? {};
    if (answer.status !== 200 || typeof token !== "string")
      throw refusedReference(
        `the Vault refused the AppRole (HTTP ${answer.status})`,
        "check secrets.vault_role_id and its secret id",
      );
    signedIn = { token, until: clock.monotonic() + seconds(Number(lease) || 0) * SHARE_OF_LEASE };
    return token;
  }

  const call = (method: "GET" | "POST", path: string, token?: string, body?: object) =>
    callVault(`${settings.url}/v1/${path}`, { method, token, body, ca: settings.caCertificates });

  async function readData(path: string): Promise<Answer> {
    const first = await call("GET", path, await signIn());
    // The token may have been revoked before its time: an AppRole gets another one, once.
    if (first.status !== 403 || settings.tokenFile !== null || signedIn === undefined) return first;
    signedIn = undefined;
    return call("GET", path, await signIn());
  }

  return {
    async read(at) {
      const [, mount = "", path = "", field = ""] = PLACE.exec(at) ?? [];
      if (mount === "" || path.split("/").some((part) => part === "." || part === ".."))
        throw refusedReference("is not of the form mount/path#field", "such as vault:secret/bmc/rack-1#password");
      if (
        !settings.paths.some(
          (allowed) => `${mount}/${path}` === allowed || `${mount}/${path}`.startsWith(`${allowed}/`),
        )
      )
        throw refusedReference("is below no path of secrets.vault_paths", "add its path there");
      const { status, json } = await readData(`${mount}/data/${path}`);
      if (status === 403)
        throw refusedReference(
          "the Vault does not let this server read it",
          "check the policy of its token or AppRole",
        );
      if (status === 404)
        throw refusedReference("the Vault has nothing there", "check the path; the mount must be KV version 2");
      if (status !== 200) throw refusedReference(`the Vault answered with HTTP ${status}`, "see its log");
      const value = (json as DataAnswer | null)?.data?.data?.[field];
      if (typeof value === "string" && value !== "") return value;
      throw refusedReference("the Vault has no text in that field", "check what follows the #");
    },
  };
}

interface LoginAnswer {
  readonly auth?: { readonly client_token?: unknown; readonly lease_duration?: unknown };
}
interface DataAnswer {
  readonly data?: { readonly data?: Readonly<Record<string, unknown>> };
}
interface Answer {
  readonly status: number;
  readonly json: unknown;
}

interface VaultCall {
  readonly method: "GET" | "POST";
  readonly token: string | undefined;
  readonly body: object | undefined;
  readonly ca: readonly string[] | undefined;
}

/** Follows no redirects: they would take the token along. */
function callVault(url: string, { method, token, body, ca }: VaultCall): Promise<Answer> {
  const request = url.startsWith("https:") ? requestHttps : requestHttp;
  const text = body === undefined ? undefined : JSON.stringify(body);
  return new Promise<Answer>((resolve, reject) => {
    const fail = (why: string) =>
      reject(refusedReference(why, "check secrets.vault_url, and that this server reaches it"));
    const sent = request(
      url,
      {
        method,
        signal: AbortSignal.timeout(LONGEST_WAIT),
        ...(ca && { ca: [...ca] }),
        headers: {
          ...(token !== undefined && { "x-vault-token": token }),
          ...(text !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > LONGEST_SECRET) {
            sent.destroy();
            fail("the Vault's answer is too long");
          } else chunks.push(chunk);
        });
        response.on("error", () => fail("the Vault broke off its answer"));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, json: parsed(Buffer.concat(chunks).toString("utf8")) }),
        );
      },
    );
    sent.on("error", (error: NodeJS.ErrnoException) =>
      fail(
        error.name === "AbortError" || error.name === "TimeoutError"
          ? "the Vault did not answer in time"
          : `the Vault cannot be reached: ${error.code ?? error.name}`,
      ),
    );
    sent.end(text);
  });
}

/** Null for what is none: nothing of it is repeated. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function readOneLine(file: string, setting: string): string {
  const next = `${setting} must name a file that holds one line, and that the server can read`;
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw refusedReference(`${setting} cannot be read: ${(error as NodeJS.ErrnoException).code}`, next);
  }
  if (/^[!-~]{1,4096}$/.test(text)) return text;
  throw refusedReference(`${setting} holds no single line of printable characters`, next);
}
