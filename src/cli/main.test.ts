import { execFile } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SystemService } from "../../contract/millwright/v1/system_pb.js";
import { createFakeShelves } from "../../test/support/cli/fake-shelves.ts";

const bin = fileURLToPath(new URL("../../bin/millwright", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "millwright-cli-"));
const fake = createFakeShelves();
let server: Server;
let url = "";

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a program with nothing in its environment but what is given. */
const runProgram = (file: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ran> =>
  new Promise((resolve) => {
    const child = execFile(file, args, { env, cwd: directory }, (_error, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    );
    child.stdin?.end();
  });
const run = (...args: string[]) => runProgram(bin, args);

beforeAll(async () => {
  fake.put({ id: "ps-1", state: "ready" });
  const answer = connectNodeAdapter({
    routes(router) {
      fake.routes(router);
      router.service(SystemService, {
        getSystem(_request, { requestHeader }) {
          if (requestHeader.get("authorization") !== "Bearer secret")
            throw new ConnectError("the token is not valid", Code.Unauthenticated);
          return { version: "9.9" };
        },
      });
    },
  });
  server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(directory, { recursive: true });
});

test("it starts with an empty environment, from another directory", async () => {
  expect(await run("--version")).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^\d+\.\d+\.\d+ \(commit \w+, schema \d{4}\)\n$/),
    err: "",
  });
});

test.each(["dev", "serve", "sim", "config"])("%s --help prints help and starts nothing", async (command) => {
  const { code, out, err } = await run(command, "--help");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toContain(`Usage: millwright ${command}`);
});

test("it is found through links, relative ones too", async () => {
  symlinkSync(bin, join(directory, "absolute"));
  symlinkSync("absolute", join(directory, "relative"));
  expect((await runProgram(join(directory, "relative"), ["--version"])).code).toBe(0);
  expect((await runProgram("sh", ["relative", "--version"], { PATH: "/usr/bin:/bin" })).code).toBe(0);
});

test("without a Node that is new enough it says what to do", async () => {
  const root = join(directory, "bare");
  mkdirSync(join(root, "bin"), { recursive: true });
  for (const file of ["millwright", "node"]) copyFileSync(join(dirname(bin), file), join(root, "bin", file));
  writeFileSync(join(root, "node"), "#!/bin/sh\necho v20.1.0\n");
  chmodSync(join(root, "node"), 0o755);
  const { code, err } = await runProgram(join(root, "bin/millwright"), ["--version"], { PATH: root });
  expect(code).toBe(70);
  expect(err).toContain(`needs Node 24 or newer; ${root}/node is v20.1.0`);
  expect(err).toContain("npm ci");
});

test("it speaks to a real server and sends the token of the data directory that is its own", async () => {
  const data = join(directory, "data");
  mkdirSync(data);
  writeFileSync(join(data, "endpoints.json"), JSON.stringify({ http: url, grpc: "127.0.0.1:1", pid: process.pid }));
  writeFileSync(join(data, "dev-token"), "secret\n");
  expect(await run("system", "--data-dir", data)).toMatchObject({
    code: 0,
    out: expect.stringContaining("9.9"),
    err: "",
  });
  const refused = await run("system", "--server", url, "--token", "other");
  expect(refused).toMatchObject({ code: 5, err: expect.stringMatching(/^error: the token is not valid\nhint: /) });
});

test("it follows a stream over HTTP and goes on after a break", async () => {
  const running = run("watch", "--from", "oldest", "-n", "2", "-o", "json", "--server", url, "--token", "secret");
  await expect.poll(() => fake.watches.length, { timeout: 8_000 }).toBe(1);
  fake.emit({ type: "first" });
  fake.breakStreams();
  fake.emit({ type: "second" });
  const { code, out } = await running;
  expect(code).toBe(0);
  expect(
    out
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { type: string }).type),
  ).toEqual(["first", "second"]);
});

test("a server that is not there is named, with what to start", async () => {
  const port = 1; // of a service that nobody has; one that was just closed may be somebody else's by now
  for (const command of [["ps", "list"], ["watch"]]) {
    const { code, err } = await run(...command, "--server", `127.0.0.1:${port}`);
    expect(code).toBe(6);
    expect(err).toContain(`error: cannot reach the server at http://127.0.0.1:${port} (ECONNREFUSED)`);
    expect(err).toContain("npm start");
  }
});

test("a reader that stops reading is no failure", async () => {
  // It is noticed at the next write, so there must always be one more.
  const feeding = setInterval(() => fake.emit({ type: "more" }), 20);
  const line = `"$0" watch --from oldest --server ${url} -o json | head -n 1`;
  const { out, err } = await runProgram("sh", ["-c", line, bin], { PATH: "/usr/bin:/bin" });
  clearInterval(feeding);
  expect(out.trim().split("\n")).toHaveLength(1);
  expect(err).toBe("");
});

test("a pipe is given all of a long answer, more than it holds at a time", async () => {
  for (let at = 1; at <= 150; at += 1) fake.put({ id: `ps-long-${at}`, state: "ready" });
  const line = `"$0" ps list --server ${url} -o json | cat`;
  const { out, err } = await runProgram("sh", ["-c", line, bin], { PATH: "/usr/bin:/bin" });
  expect(err).toBe("");
  expect(out.length).toBeGreaterThan(100_000);
  expect(JSON.parse(out)).toHaveLength(151);
});
