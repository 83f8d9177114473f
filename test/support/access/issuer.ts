import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
} from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { exportJWK, generateKeyPair } from "jose";
import Provider from "oidc-provider";

export interface Issuer {
  readonly url: string;
  /** From now on people sign in to the application at this address. */
  serve(applicationUrl: string): Promise<void>;
  /** People and their groups. */
  readonly groups: Map<string, readonly string[]>;
  close(): Promise<void>;
}

export const CLIENT_ID = "millwright-console";
export const CLIENT_SECRET = "the-secret-of-the-client";

/** A certified OpenID provider that we did not write, on loopback, with its own pages for signing in. Clients must use PKCE. */
export async function startIssuer(): Promise<Issuer> {
  let answer: RequestListener = (_, response) => void response.writeHead(503).end();
  const server = createServer((request, response) => answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const groups = new Map<string, readonly string[]>();
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), alg: "RS256", use: "sig", kid: "test" };
  return {
    url,
    groups,
    async serve(applicationUrl) {
      const provider = new Provider(url, {
        clients: [
          {
            ...{ client_id: CLIENT_ID, client_secret: CLIENT_SECRET },
            redirect_uris: [`${applicationUrl}/auth/callback`],
            ...{ grant_types: ["authorization_code"], response_types: ["code"] },
          },
        ],
        ...{ jwks: { keys: [key] }, cookies: { keys: ["test"] }, conformIdTokenClaims: false },
        pkce: { required: () => true },
        claims: { openid: ["sub"], profile: ["groups"] },
        findAccount: (_: unknown, id: string) => ({
          accountId: id,
          claims: async () => ({ sub: id, groups: groups.get(id) ?? [] }),
        }),
        features: { devInteractions: { enabled: true } },
      });
      answer = provider.callback();
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

interface Answered {
  /** Where it leads on; undefined: it is a page. */
  readonly to: string | undefined;
  readonly status: number;
  readonly text: string;
  readonly cookies: readonly string[];
}

/** A browser as far as redirects, cookies and forms go: one jar for each origin. */
export class FormBrowser {
  /** Where the page is that sends somebody on. */
  #at: string | undefined;
  readonly #jars = new Map<string, Map<string, string>>();

  cookie(url: string, name: string): string | undefined {
    return this.#jar(url).get(name);
  }

  setCookie(url: string, name: string, value: string): void {
    this.#jar(url).set(name, value);
  }

  /** One request, as a browser that follows a link makes it, and what it was answered with; redirects are told, not followed. */
  async ask(url: string, form?: Readonly<Record<string, string>>): Promise<Answered> {
    const jar = this.#jar(url);
    const { origin } = new URL(url);
    const body = form && new URLSearchParams(form).toString();
    const { status, headers, text } = await request(url, body, {
      cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "),
      "sec-fetch-site": this.#at === undefined || this.#at === origin ? "same-origin" : "cross-site",
    });
    this.#at = origin;
    const cookies = headers["set-cookie"] ?? [];
    for (const line of cookies) {
      const [pair = ""] = line.split(";");
      const [name = "", value = ""] = pair.split(/=(.*)/s);
      if (value === "") jar.delete(name);
      else jar.set(name, value);
    }
    const { location } = headers;
    return { to: location === undefined ? undefined : new URL(location, url).href, status, text, cookies };
  }

  /** Goes where it is sent, and signs in at the issuer, until it is sent back to the application: that address, not yet asked. */
  async signIn(start: string, login: string, application: string): Promise<string> {
    let answered = await this.ask(start);
    for (let step = 0; step < 12; step += 1) {
      const { to, status, text } = answered;
      if (to?.startsWith(`${application}/`)) return to;
      if (to === undefined && status !== 200) throw new Error(`the sign-in ended with ${status}: ${text}`);
      answered = to === undefined ? await this.#fillIn(text, login) : await this.ask(to);
    }
    throw new Error("the sign-in goes round in circles");
  }

  #fillIn(page: string, login: string): Promise<Answered> {
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? "";
    const action = /action="([^"]+)"/.exec(page)?.[1] ?? "";
    return this.ask(new URL(action, this.#at).href, { prompt, login, password: "any" });
  }

  #jar(url: string): Map<string, string> {
    const { origin } = new URL(url);
    const jar = this.#jars.get(origin) ?? new Map<string, string>();
    this.#jars.set(origin, jar);
    return jar;
  }
}

/** Not `fetch`, which says of itself that it is no navigation. */
async function request(url: string, body: string | undefined, headers: OutgoingHttpHeaders) {
  const sent = httpRequest(url, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      ...headers,
      ...{ "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
      ...(body !== undefined && { "content-type": "application/x-www-form-urlencoded" }),
    },
  });
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await readText(answer) };
}
