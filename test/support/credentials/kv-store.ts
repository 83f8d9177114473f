import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Speaks as much of Vault's HTTP API as a client of its KV store (version 2) needs; no Vault can be had for tests. */
export interface KvStore {
  readonly url: string;
  /** By mount and path, such as secret/bmc/one. */
  readonly secrets: Map<string, Readonly<Record<string, unknown>>>;
  /** What is let in. */
  readonly tokens: Set<string>;
  /** The AppRole and the secret id that get a token. */
  readonly role: { readonly roleId: string; readonly secretId: string };
  /** Method and path of each call. */
  readonly calls: string[];
  /** It takes calls, and answers none. */
  hangs: boolean;
  close(): Promise<void>;
}

export async function startKvStore(): Promise<KvStore> {
  let logins = 0;
  const server = createServer(async (request, response) => {
    store.calls.push(`${request.method} ${request.url}`);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (store.hangs) return;
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.method === "POST" && request.url === "/v1/auth/approle/login") {
      const given = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { role_id?: string; secret_id?: string };
      if (given.role_id !== store.role.roleId || given.secret_id !== store.role.secretId)
        return answer(400, { errors: ["invalid role or secret ID"] });
      logins += 1;
      store.tokens.add(`s.${logins}`);
      return answer(200, { auth: { client_token: `s.${logins}`, lease_duration: 3_600 } });
    }
    if (!store.tokens.has(String(request.headers["x-vault-token"])))
      return answer(403, { errors: ["permission denied"] });
    const [, mount, path] = /^\/v1\/([^/]+)\/data\/(.+)$/.exec(request.url ?? "") ?? [];
    const data = store.secrets.get(`${mount}/${path}`);
    return data ? answer(200, { data: { data, metadata: { version: 1 } } }) : answer(404, { errors: [] });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const store: KvStore = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    secrets: new Map(),
    tokens: new Set(),
    role: { roleId: "millwright", secretId: "secret-id-1" },
    calls: [],
    hangs: false,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return store;
}
