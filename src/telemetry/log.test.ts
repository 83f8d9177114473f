import { describe, expect, test } from "vitest";
import { createLog, type LogOptions } from "./log.ts";

const TOKEN = `mw_${"0".repeat(16)}_${"a".repeat(64)}`;

function capture(options: Partial<LogOptions> & { isTTY?: boolean } = {}) {
  const { isTTY = false, ...rest } = options;
  const lines: string[] = [];
  const log = createLog({
    level: "info",
    format: "auto",
    output: { isTTY, write: (line) => void lines.push(line) },
    ...rest,
  });
  return { log, lines, entry: () => JSON.parse(lines.at(-1) ?? "") as Record<string, unknown> };
}

describe("the log", () => {
  test("is JSON away from a terminal, with what the child logger adds", () => {
    const { log, entry } = capture({ base: { replica: "r1" } });
    log.child({ component: "engine" }).info({ kind: "power_shelf" }, "committed");
    expect(entry()).toMatchObject({
      level: "info",
      replica: "r1",
      component: "engine",
      kind: "power_shelf",
      msg: "committed",
    });
    expect(entry().time).toMatch(/^\d{4}-\d\d-\d\dT/);
  });

  test("is readable on a terminal, with the stack of an error below", () => {
    const { log, lines } = capture({ isTTY: true });
    log.warn({ id: "ps-1", err: new Error("no answer") }, "the BMC is slow");
    const plain = lines.join("").replace(new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, "g"), "");
    expect(plain).toMatch(/^\d\d:\d\d:\d\d\.\d{3} warn {2}the BMC is slow {2}id=ps-1\n {4}Error: no answer\n/);
  });

  test("can be told its format, and keeps colours to terminals", () => {
    const text = capture({ format: "text" });
    text.log.info("hello");
    expect(text.lines[0]).toMatch(/info {2}hello\n$/);
    expect(text.lines[0]).not.toContain(String.fromCharCode(27));
    const json = capture({ format: "json", isTTY: true });
    json.log.info("hello");
    expect(json.entry().msg).toBe("hello");
  });

  test("leaves out what is below its level", () => {
    const { log, lines } = capture({ level: "warn" });
    log.info("quiet");
    expect(lines).toEqual([]);
  });
});

describe("secrets", () => {
  test.each([
    ["a field", { password: "hunter2" }],
    ["a field deep down", { bmc: { session: [{ bmcPassword: "hunter2" }] } }],
    ["headers", { request: { headers: { Authorization: "hunter2", "set-cookie": "hunter2" } } }],
    ["a database URL", { url: "postgres://mw:hunter2@db/mw" }],
    ["an error's message", { err: new Error("GET https://root:hunter2@10.0.0.1/redfish failed") }],
    ["an error's own fields", { err: Object.assign(new Error("x"), { options: { accessToken: "hunter2" } }) }],
    ["an error's cause", { err: new Error("x", { cause: new Error("postgres://mw:hunter2@db") }) }],
    ["a header in text", { note: "sent Authorization: Basic hunter2hunter2" }],
  ])("in %s are not logged", (_where, fields) => {
    for (const isTTY of [false, true]) {
      const { log, lines } = capture({ isTTY });
      log.error(fields, "failed");
      expect(lines).toHaveLength(1);
      expect(lines.join("")).not.toContain("hunter2");
    }
  });

  test("in messages and child loggers are not logged either", () => {
    const { log, lines } = capture();
    log.child({ token: "hunter2" }).info(`signed in with ${TOKEN}`);
    expect(lines.join("")).not.toContain("hunter2");
    expect(lines.join("")).not.toContain("a".repeat(64));
    expect(lines.join("")).toContain(`mw_${"0".repeat(16)}_[hidden]`);
  });

  test("are told from what only sounds like one", () => {
    const { log, entry } = capture();
    log.info({ tokenId: "0a", secretKeyFile: "/k", at: new Date(0), when: "10:30@noon" }, "https://host:8080/path");
    expect(entry()).toMatchObject({
      tokenId: "0a",
      secretKeyFile: "/k",
      at: "1970-01-01T00:00:00.000Z",
      msg: "https://host:8080/path",
    });
  });

  test("do not make a cycle hang the logger", () => {
    const loop: Record<string, unknown> = { name: "loop" };
    loop.self = loop;
    const { log, entry } = capture();
    log.info({ loop }, "round");
    expect(entry().msg).toBe("round");
  });
});
