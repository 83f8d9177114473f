import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { aTarget } from "../../capabilities/conformance/device-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { type Answer, retryAfter } from "../transport/http-answer.ts";
import { failureOf, resourceOf } from "./answers.ts";

const target = aTarget();
const asked = { target, method: "GET", path: "/redfish/v1/Chassis" };
const anAnswer = (status: number, body: unknown = "", headers: Answer["headers"] = {}): Answer => ({
  status,
  headers,
  text: typeof body === "string" ? body : JSON.stringify(body),
});
const refusalOf = (answer: Answer, method = "GET"): unknown => {
  try {
    return resourceOf({ ...asked, method }, answer);
  } catch (error) {
    return error;
  }
};

test.each([
  [301, "fail", "protocol"],
  [400, "fail", "refused_by_device"],
  [401, "fail", "credentials_rejected"],
  [403, "fail", "forbidden"],
  [404, "fail", "not_found_there"],
  [405, "fail", "refused_by_device"],
  [409, "fail", "refused_by_device"],
  [408, "retry", "busy"],
  [429, "retry", "busy"],
  [500, "retry", "busy"],
  [503, "retry", "busy"],
] as const)("status %i means %s, %s", (status, disposition, code) => {
  expect(failureOf(asked, anAnswer(status))).toMatchObject({ disposition, code, status });
});

test("a good answer is its resource; one without a body is empty where none is due", () => {
  expect(resourceOf(asked, anAnswer(200, { Id: "a" }))).toEqual({ Id: "a" });
  expect(resourceOf({ ...asked, method: "POST" }, anAnswer(204))).toEqual({});
  expect(resourceOf({ ...asked, method: "POST" }, anAnswer(200))).toEqual({});
});

test.each(["", "{", "<html>starting</html>", "null", "[]", '"On"', "\u0000"])(
  "a GET answered with %j is tried again",
  (text) => {
    expect(refusalOf(anAnswer(200, text))).toMatchObject({ disposition: "retry", family: "odd" });
  },
);

describe("what the BMC says of an error", () => {
  test("is told from Redfish's extended information", () => {
    const body = {
      error: {
        code: "Base.1.0.GeneralError",
        message: "See ExtendedInfo",
        "@Message.ExtendedInfo": [{ Message: "The shelf is locked." }, { MessageId: "Vendor.1.0.Locked" }],
      },
    };
    expect(failureOf(asked, anAnswer(400, body))?.message).toBe(
      "BMC 192.0.2.1:443: GET /redfish/v1/Chassis was refused with status 400: The shelf is locked.",
    );
  });

  test("is told from the error itself where the extended information has a code alone", () => {
    const code = "Base.1.0.GeneralError";
    const error = { code, message: "Boot device Cd is not present.", "@Message.ExtendedInfo": [{ MessageId: code }] };
    expect(failureOf(asked, anAnswer(500, { error }))?.message).toMatch(/: Boot device Cd is not present\.$/);
    const only = { code, "@Message.ExtendedInfo": [{ MessageId: "Vendor.1.0.Locked" }] };
    expect(failureOf(asked, anAnswer(500, { error: only }))?.message).toMatch(/: Vendor\.1\.0\.Locked$/);
  });

  test("falls back to the plain message, then to the text", () => {
    expect(failureOf(asked, anAnswer(400, { error: { message: "no" } }))?.message).toMatch(/: no$/);
    expect(failureOf(asked, anAnswer(400, "Bad\n\tRequest"))?.message).toMatch(/: Bad Request$/);
  });

  test("never repeats the password, however the BMC puts it", () => {
    const body = { error: { "@Message.ExtendedInfo": [{ Message: `password canary-4711 is wrong` }] } };
    for (const status of [400, 401, 403, 404, 500]) {
      expect(failureOf(asked, anAnswer(status, body))?.message).not.toContain("canary-4711");
    }
    expect((refusalOf(anAnswer(200, "garbage canary-4711")) as Error).message).not.toContain("canary-4711");
  });

  test.each([
    ["in JSON", (secret: string) => JSON.stringify(secret)],
    ["in JSON with its slashes escaped", (secret: string) => JSON.stringify(secret).replaceAll("/", "\\/")],
    ["in JSON without other than ASCII", () => '"p\\"a/\\u00df \\\\canary"'],
    ["in an address", (secret: string) => encodeURIComponent(secret)],
    ["in an address in small letters", () => "p%22a%2f%c3%9f%20%5ccanary"],
    ["in a form", (secret: string) => new URLSearchParams({ secret }).toString()],
    ["in HTML", (secret: string) => secret.replaceAll('"', "&quot;")],
    ["in the Basic header", (secret: string) => Buffer.from(`root:${secret}`).toString("base64")],
    ["in base64", (secret: string) => Buffer.from(secret).toString("base64")],
  ])("never repeats the password as it is spelt %s, nor the token", (_where, spell) => {
    const password = 'p"a/ß \\canary';
    const token = "Session/Token=";
    const text = `before ${spell(password)} between ${spell(token)} after`;
    const said = failureOf({ ...asked, target: { ...target, password }, token }, anAnswer(400, text))?.message;
    expect(said).toMatch(/before .*\*\*\*.* after$/);
    expect(said).not.toContain(spell(password));
    expect(said).not.toMatch(/canary|Session\/?Token/);
  });

  test("is short and on one line, without what could command a terminal", () => {
    const message = failureOf(asked, anAnswer(500, `\u001b[31m\u202e${"x\n".repeat(5_000)}`))?.message ?? "";
    expect(message.length).toBeLessThan(500);
    expect(message).not.toMatch(/\p{Cf}/u);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: their absence is what is checked
    expect(message).not.toMatch(/[\u0000-\u001f]/);
  });
});

test.each([
  ["120", 120_000],
  ["0", 0],
  ["Tue, 01 Jan 2030 00:00:10 GMT", 10_000],
  ["Mon, 31 Dec 2029 23:59:50 GMT", 0],
  ["soon", undefined],
  ["-5", undefined],
])("Retry-After %j is %s ms", (header, expected) => {
  expect(retryAfter(header, Date.parse("2030-01-01T00:00:00Z"))).toBe(expected);
});

test("any status with any text is a resource or a device failure, nothing else", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 999 }),
      fc.oneof(fc.string(), fc.json()),
      fc.constantFrom("GET", "POST"),
      (status, text, method) => {
        const result = refusalOf(anAnswer(status, text), method);
        expect(result instanceof DeviceFailure || (typeof result === "object" && !(result instanceof Error))).toBe(
          true,
        );
      },
    ),
  );
});
