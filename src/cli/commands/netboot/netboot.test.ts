import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "millwright-netboot-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const run = (command: string, env: Readonly<Record<string, string>> = {}) => runAgainst(() => {}, command, { env });
const busybox = ["/bin/busybox", "/usr/bin/busybox"].find(
  (path) => existsSync(path) && spawnSync(path, ["true"]).status === 0,
);

describe("netboot dnsmasq", () => {
  const NETWORK = "--interface eno2 --range 10.0.0.10,10.0.0.20";

  test("prints a configuration, for the server of the command line unless told otherwise", async () => {
    const told = await run(`netboot dnsmasq ${NETWORK} --boot-url http://10.0.0.1:8080/`);
    expect(told).toMatchObject({
      code: 0,
      err: "",
      out: expect.stringContaining('"http://10.0.0.1:8080/api/v1/boot?mac='),
    });
    const found = await run(`netboot dnsmasq ${NETWORK}`, { MILLWRIGHT_SERVER: "http://10.0.0.9:8080" });
    expect(found).toMatchObject({ code: 0, out: expect.stringContaining('"http://10.0.0.9:8080/api/v1/boot?mac=') });
  });

  test.each([
    ["that has a listener for boot scripts", 404, { "x-request-id": "r-1" }, "--boot-url is missing"],
    ["that something stands before", 404, {}, "is this machine alone"],
    ["that gives them out", 200, { "x-request-id": "r-1" }, "is this machine alone"],
  ])("asks a server %s before it is named", async (_, status, headers, said) => {
    const server = createServer((_request, response) => response.writeHead(status, headers).end());
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { err, code } = await run(`netboot dnsmasq ${NETWORK}`, { MILLWRIGHT_SERVER: url });
    // A server that is taken is refused next: other machines cannot reach loopback.
    expect(err).toContain(said);
    expect(code).toBe(2);
    server.close();
  });

  test("writes a file at once, and leaves no other behind", async () => {
    const out = join(directory, "dnsmasq.conf");
    expect(await run(`netboot dnsmasq ${NETWORK} --boot-url http://10.0.0.1:8080 --out ${out}`)).toMatchObject({
      code: 0,
    });
    expect(readFileSync(out, "utf8")).toContain("dhcp-range=10.0.0.10,10.0.0.20,1h\n");
    expect(readdirSync(directory)).toEqual(["dnsmasq.conf"]);
  });

  test.each([
    ["--boot-url", `${NETWORK} --boot-url http://127.0.0.1:8080`],
    ["--range", "--interface eno2 --range 10.0.0.10 --boot-url http://10.0.0.1"],
    ["--interface", "--range 10.0.0.10,10.0.0.20 --boot-url http://10.0.0.1"],
    ["--out", `${NETWORK} --boot-url http://10.0.0.1 --out /no/such/directory/x`],
  ])("says what is wrong with %s", async (option, words) => {
    expect(await run(`netboot dnsmasq ${words}`)).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining(option),
    });
  });
});

describe("netboot environment", () => {
  test.each([
    ["--kernel", "--kernel /no/kernel --busybox /no/busybox"],
    ["--busybox", `--kernel ${import.meta.filename} --busybox ${import.meta.filename}`],
    ["--modules", `--kernel ${import.meta.filename} --busybox ${import.meta.filename} --modules /no/modules`],
    ["--module", `--kernel ${import.meta.filename} --busybox ${import.meta.filename} --module no_such_module`],
  ])("says what is wrong with %s, and makes nothing", async (option, words) => {
    const out = join(directory, "nothing");
    expect(await run(`netboot environment ${words} --out ${out}`)).toMatchObject({
      code: 2,
      err: expect.stringContaining(option),
    });
    expect(existsSync(out)).toBe(false);
  });

  test("puts every script of ours in, with busybox", async ({ skip }) => {
    if (busybox === undefined) skip("needs Debian's busybox-static");
    const kernel = join(directory, "kernel");
    writeFileSync(kernel, "a kernel of another kind");
    const out = join(directory, "environment");
    const {
      code,
      out: said,
      err,
    } = await run(`netboot environment --kernel ${kernel} --busybox ${busybox} --out ${out} -o json`);
    if (/needs libraries/.test(err)) skip("needs Debian's busybox-static");
    expect(code, err).toBe(0);
    expect(JSON.parse(said)).toMatchObject({
      files: [{ path: join(out, "vmlinuz") }, { path: join(out, "initrd") }],
      modules: [],
    });
    const archive = gunzipSync(readFileSync(join(out, "initrd"))).toString("latin1");
    const agent = join(import.meta.dirname, "..", "..", "..", "..", "netboot", "agent");
    for (const name of readdirSync(agent)) expect(archive).toContain(readFileSync(join(agent, name), "latin1"));
  });
});
