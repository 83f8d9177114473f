import { describe, expect, test } from "vitest";
import { aTarget } from "../../capabilities/conformance/device-bench.ts";
import { createAnswerReader } from "./device-answer.ts";
import type { Answer } from "./http-answer.ts";

/** What no technology has a say in; their own words are tested beside them. */
const target = aTarget();
const asked = { target, method: "GET", path: "/v1/things?fields=a,b" };
const anAnswer = (status: number, text = "", headers: Answer["headers"] = {}): Answer => ({ status, headers, text });
const { failureOf, resourceOf } = createAnswerReader({
  saidBy: (_, { text }) => text,
  callerOf: () => ({ as: "user root", showing: " with the given password" }),
  alsoBusy: [423],
});

test.each([
  [401, "wrong credentials: BMC 192.0.2.1:443 does not accept user root with the given password (401): go away"],
  [
    403,
    "BMC 192.0.2.1:443: user root lacks the right for GET /v1/things (403): go away; give credentials of an account that has it",
  ],
  [404, "BMC 192.0.2.1:443: GET /v1/things: no such resource (404): go away"],
  [418, "BMC 192.0.2.1:443: GET /v1/things was refused with status 418: go away"],
])("status %i says who was asked what, without the query, and what came of it", (status, message) => {
  expect(failureOf(asked, anAnswer(status, "go away"))?.message).toBe(message);
});

test("what one technology calls busy is worth another try there, after as long as the device wants", () => {
  expect(failureOf(asked, anAnswer(423, "", { "retry-after": "7" }))).toMatchObject({
    disposition: "retry",
    family: "busy",
    retryAfterMs: 7_000,
  });
  const strict = createAnswerReader({ saidBy: () => "", callerOf: () => ({ as: "nobody", showing: "" }) });
  expect(strict.failureOf(asked, anAnswer(423))).toMatchObject({ disposition: "fail", family: "declines" });
});

describe("an empty answer", () => {
  test.each([
    ["GET", 202],
    ["GET", 204],
    ["PUT", 200],
  ])("to %s with %i is an empty resource", (method, status) => {
    expect(resourceOf({ ...asked, method }, anAnswer(status, " "))).toEqual({});
  });

  test("to a question that was to be answered makes no sense", () => {
    expect(() => resourceOf(asked, anAnswer(200, " "))).toThrow("not a JSON object: nothing");
  });
});
