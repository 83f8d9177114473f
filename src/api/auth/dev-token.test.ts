import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TokenVerdict } from "../../services/system/tokens.ts";
import { type DevTokenStore, ensureDevToken } from "./dev-token.ts";

let dataDir: string;
let known: Map<string, TokenVerdict>;
const store: DevTokenStore = {
  verify: async (token) => known.get(token) ?? { status: "unknown" },
  async create({ name, roles }) {
    const token = `mw_${known.size}`;
    known.set(token, { status: "valid", id: "x", name, roles, scope: null, expiresAt: null, boundTo: null });
    return { token };
  },
};

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "millwright-dev-token-"));
  known = new Map();
});
afterEach(() => rm(dataDir, { recursive: true }));

describe("the dev token", () => {
  test("is an administrator named dev, in one line that only its owner can read", async () => {
    const { path, token } = await ensureDevToken(dataDir, store);
    expect(path).toBe(join(dataDir, "dev-token"));
    expect(await readFile(path, "utf8")).toBe(`${token}\n`);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(known.get(token)).toMatchObject({ name: "dev", roles: ["admin"] });
    expect(await readdir(dataDir)).toEqual(["dev-token"]);
  });

  test("stays the same over restarts, and is closed to others again", async () => {
    const first = await ensureDevToken(dataDir, store);
    await chmod(first.path, 0o644);
    expect(await ensureDevToken(dataDir, store)).toEqual(first);
    expect((await stat(first.path)).mode & 0o777).toBe(0o600);
  });

  test.each<[string, TokenVerdict]>([
    ["a database that does not know it", { status: "unknown" }],
    ["a revocation", { status: "revoked", at: new Date(0) }],
    [
      "a token of somebody else in the file",
      { status: "valid", id: "y", name: "pat", roles: ["viewer"], scope: null, expiresAt: null, boundTo: null },
    ],
  ])("is made anew after %s", async (_what, verdict) => {
    await writeFile(join(dataDir, "dev-token"), "old\n");
    known.set("old", verdict);
    const { path, token } = await ensureDevToken(dataDir, store);
    expect(token).not.toBe("old");
    expect(await readFile(path, "utf8")).toBe(`${token}\n`);
  });
});
