import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { createConsole } from "../../../src/api/console/console.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type ApiUnderTest, startApi } from "./api-under-test.ts";

const SCRIPT = `console.log("${"millwright ".repeat(50)}")`;
const PAGE = `<!doctype html><meta property="csp-nonce" nonce="__CSP_NONCE__"><script type="module" src="/assets/index-1.js" nonce="__CSP_NONCE__"></script>`;
const FOR_PEOPLE = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

let api: ApiUnderTest;
let directory: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-console-"));
  const console = createConsole({ directory });
  api = await startApi({
    http: async (app) => {
      await app.register(console.routes);
      app.get("/api/v1/nodes", async () => []);
    },
    fallback: console.fallback,
    routes: () => undefined,
  });
});
afterAll(async () => {
  await api.close();
  rmSync(directory, { recursive: true });
});

const get = (path: string, headers: Record<string, string> = {}) => fetch(`${api.httpUrl}${path}`, { headers });

function build(page = PAGE): void {
  mkdirSync(join(directory, "assets"), { recursive: true });
  const script = join(directory, "assets", "index-1.js");
  writeFileSync(script, SCRIPT);
  writeFileSync(`${script}.br`, brotliCompressSync(SCRIPT));
  writeFileSync(`${script}.gz`, gzipSync(SCRIPT));
  writeFileSync(join(directory, "digest.txt"), "a digest");
  writeFileSync(join(directory, "index.html"), page);
}

describe("the console", () => {
  test("says how it is built where nothing is, and the API is unaffected", async () => {
    const answer = await get("/", FOR_PEOPLE);
    expect(answer.status).toBe(503);
    expect(await answer.text()).toContain("npm run console");
    expect((await get("/api/v1/nodes")).status).toBe(200);
  });

  test("is one page at every path that is nobody else's, with a nonce that no other answer has", async () => {
    build();
    const [first, second] = await Promise.all([get("/", FOR_PEOPLE), get("/machines/m-1?x=1", FOR_PEOPLE)]);
    expect([first.status, second.status]).toEqual([200, 200]);
    const [one, other] = await Promise.all([first.text(), second.text()]);
    const nonceOf = (html: string) => /nonce="([^"]+)"/.exec(html)?.[1] ?? "";
    expect(nonceOf(one)).toMatch(/^[\w+/]{24}$/);
    expect(nonceOf(other)).not.toBe(nonceOf(one));
    const policy = first.headers.get("content-security-policy") ?? "";
    expect(policy).toContain(`style-src 'self' 'nonce-${nonceOf(one)}'`);
    expect(policy).toContain("default-src 'none'; script-src 'self';");
    expect(policy).not.toContain("unsafe");
    expect(first.headers.get("cache-control")).toBe("no-store");
    expect(first.headers.get("x-frame-options")).toBe("DENY");
  });

  test.each([
    "/api/v1/unknown",
    "/api",
    "/internal/v1/nodes/n",
    "/files/none",
    "/auth/none",
    "/metrics/x",
    "/millwright.v1.MachineService/ListMachines",
    "/assets/none.js",
  ])("swallows no path of the API: %s", async (path) => {
    build();
    const answer = await get(path, FOR_PEOPLE);
    expect(answer.status).toBe(404);
    expect(answer.headers.get("content-type")).toContain("application/json");
  });

  test("answers programs as before, and nothing but reads", async () => {
    build();
    expect((await get("/machines", { accept: "application/json" })).status).toBe(404);
    expect((await get("/machines", { accept: "*/*" })).status).toBe(404);
    const posted = await fetch(`${api.httpUrl}/machines`, { method: "POST", headers: FOR_PEOPLE });
    expect(posted.status).toBe(404);
  });

  test.each([
    ["br, gzip", "br"],
    ["gzip", "gzip"],
    ["br;q=0, gzip;q=0.5", "gzip"],
    ["identity", null],
  ])("sends its files compressed as %s is accepted, to be kept for ever", async (accepted, encoding) => {
    build();
    const answer = await get("/assets/index-1.js", { "accept-encoding": accepted });
    expect(answer.headers.get("content-encoding")).toBe(encoding);
    expect(await answer.text()).toBe(SCRIPT);
    expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(answer.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(answer.headers.get("vary")).toBe("accept-encoding");
  });

  test.each(["/assets/..%2Fdigest.txt", "/assets/digest.txt", "/assets/%2e%2e/index.html", "/digest.txt", "/assets/"])(
    "gives out nothing but its files: %s",
    async (path) => {
      build();
      expect((await get(path)).status).toBe(404);
    },
  );

  test("shows another build as soon as there is one", async () => {
    build();
    await get("/", FOR_PEOPLE);
    build(`${PAGE}<title>another</title>`);
    utimesSync(join(directory, "index.html"), new Date(), new Date(Date.now() + 5_000));
    expect(await (await get("/", FOR_PEOPLE)).text()).toContain("another");
  });
});
