import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import fastify, { type FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFiles, parseRange } from "./files.ts";

let directory: string;
let app: FastifyInstance;
beforeAll(async () => {
  const outside = await mkdtemp(join(tmpdir(), "files-"));
  directory = join(outside, "served");
  await mkdir(join(directory, "ubuntu"), { recursive: true });
  await writeFile(join(outside, "secret"), "not for you");
  await writeFile(join(directory, "ubuntu", "vmlinuz"), "0123456789");
  await writeFile(join(directory, "empty"), "");
  await symlink(join(outside, "secret"), join(directory, "leads-out"));
  await symlink(join(directory, "ubuntu", "vmlinuz"), join(directory, "leads-in"));
  app = fastify();
  await app.register(createFiles({ directory, reportUnexpected: () => "reference" }));
});
afterAll(async () => {
  await app.close();
  await rm(join(directory, ".."), { recursive: true });
});

const get = (url: string, headers: Record<string, string> = {}) => app.inject({ method: "GET", url, headers });

describe("files", () => {
  test("are served whole, and in the pieces that firmware asks for", async () => {
    expect((await get("/files/ubuntu/vmlinuz")).body).toBe("0123456789");
    const piece = await get("/files/ubuntu/vmlinuz", { range: "bytes=2-4" });
    expect([piece.statusCode, piece.body, piece.headers["content-range"]]).toEqual([206, "234", "bytes 2-4/10"]);
    expect((await get("/files/ubuntu/vmlinuz", { range: "bytes=-3" })).body).toBe("789");
    expect((await get("/files/ubuntu/vmlinuz", { range: "bytes=10-" })).statusCode).toBe(416);
    expect((await get("/files/empty")).statusCode).toBe(200);
  });

  test("that changed meanwhile are not stitched together", async () => {
    const { etag } = (await get("/files/ubuntu/vmlinuz")).headers;
    expect((await get("/files/ubuntu/vmlinuz", { range: "bytes=0-0", "if-range": String(etag) })).statusCode).toBe(206);
    expect((await get("/files/ubuntu/vmlinuz", { range: "bytes=0-0", "if-range": '"old"' })).statusCode).toBe(200);
    expect((await get("/files/ubuntu/vmlinuz", { "if-none-match": String(etag) })).statusCode).toBe(304);
  });

  test("that are pipes keep nobody waiting", async () => {
    expect(spawnSync("mkfifo", [join(directory, "pipe")]).status).toBe(0);
    expect((await get("/files/pipe")).statusCode).toBe(404);
  });

  test("are told of by HEAD without being sent", async () => {
    const head = await app.inject({ method: "HEAD", url: "/files/ubuntu/vmlinuz" });
    expect([head.statusCode, head.headers["content-length"], head.body]).toEqual([200, "10", ""]);
  });

  test("may be links, as long as they lead to what is served", async () => {
    expect((await get("/files/leads-in")).body).toBe("0123456789");
    expect((await get("/files/leads-out")).statusCode).toBe(404);
  });

  test.each([
    "/files/../secret",
    "/files/%2e%2e/secret",
    "/files/..%2fsecret",
    "/files/ubuntu/../../secret",
    "/files/%2e%2e%2f%2e%2e%2fetc/passwd",
    "/files//etc/passwd",
    "/files/ubuntu/vmlinuz/x",
    "/files/ubuntu",
    "/files/",
    "/files/a%00b",
    `/files/${"a".repeat(5_000)}`,
  ])("outside of the directory, or that are none, are not found: %s", async (url) => {
    const answer = await get(url);
    expect([404, 414]).toContain(answer.statusCode);
    expect(answer.body).not.toContain("not for you");
  });
});

test("a range, whatever it says, lies within the file", () => {
  const header = fc.oneof(
    fc.string(),
    fc.tuple(fc.nat(), fc.nat()).map(([a, b]) => `bytes=${a}-${b}`),
    fc.nat().map((n) => `bytes=-${n}`),
  );
  fc.assert(
    fc.property(header, fc.nat({ max: 1_000 }), (text, size) => {
      const range = parseRange(text, size);
      if (typeof range !== "object") return;
      expect(range.start).toBeGreaterThanOrEqual(0);
      expect(range.end).toBeGreaterThanOrEqual(range.start);
      expect(range.end).toBeLessThan(size);
    }),
  );
});
