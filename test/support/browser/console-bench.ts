import { existsSync } from "node:fs";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { openProcessBench, type ProcessBench } from "../processes/process-bench.ts";
import { devTokenOf, type ServerProcess, startServerProcess } from "../processes/server-process.ts";
import { CHROMIUM, startBrowser, type TestBrowser, type Viewed } from "./browser.ts";

/** Why there is no browser here; undefined when there is one. */
export const whyNoBrowser = (): string | undefined => (existsSync(CHROMIUM) ? undefined : "needs chromium");

export interface ConsoleBench {
  readonly server: ServerProcess;
  /** For what no call writes, such as a log of a million lines. */
  readonly database: TestDatabase;
  readonly browser: TestBrowser;
  /** The address that `npm start` prints. */
  readonly link: string;
  readonly token: string;
  /** A page on which somebody has signed in with a token, the administrator's unless told. */
  signedIn(options?: Parameters<TestBrowser["open"]>[0] & { readonly token?: string }): Promise<Viewed>;
  /** Stops the server in good order, and starts it again at the same place. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** A whole `millwright dev`, with its simulated datacentre, and a browser beside it. */
export async function openConsoleBench(env: Readonly<Record<string, string>> = {}): Promise<ConsoleBench> {
  const bench: ProcessBench = openProcessBench();
  const database: TestDatabase = await createTestDatabase();
  const options = { command: "dev", databaseUrl: database.url } as const;
  let server = await startServerProcess(bench, { ...options, env });
  const stop = async () => {
    server.process.signal("SIGTERM");
    await server.process.exited;
  };
  const [, link = ""] = await server.process.said(/console\s+(\S+)/);
  const token = devTokenOf(server);
  const browser = await startBrowser();
  return {
    ...{ browser, link, token, database },
    get server() {
      return server;
    },
    async signedIn({ token: given = token, ...options } = {}) {
      const viewed = await browser.open(options);
      const { page } = viewed;
      await page.goto(`${server.httpUrl}/sign-in`);
      await page.getByLabel("Token", { exact: true }).fill(given);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      return viewed;
    },
    async restart() {
      const { host } = new URL(server.httpUrl);
      await stop();
      server = await startServerProcess(bench, { ...options, env: { ...env, MILLWRIGHT_HTTP_LISTEN: host } });
    },
    async close() {
      await browser.close();
      await stop();
      await bench.close();
      await database.drop();
    },
  };
}
