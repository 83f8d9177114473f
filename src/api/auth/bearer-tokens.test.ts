import { createHash } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { seconds } from "../../kernel/time/duration.ts";
import type { TokenVerdict } from "../../services/system/tokens.ts";
import { createBearerTokens } from "./bearer-tokens.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const valid = (expiresAt: Date | null = null): TokenVerdict => ({
  status: "valid",
  id: "a1",
  name: "pat",
  roles: ["viewer"],
  scope: null,
  expiresAt,
  boundTo: null,
});

let millis = 0;
const start = Date.parse("2025-01-01T00:00:00Z");
const clock = { now: () => new Date(start + millis), monotonic: () => millis };
let verdict: TokenVerdict;
let asked: string[];

const tokens = (known: Parameters<typeof createBearerTokens>[0]["known"] = []) =>
  createBearerTokens({
    clock,
    known,
    cacheFor: seconds(5),
    verify: async (token) => {
      asked.push(token);
      return verdict;
    },
  });

beforeEach(() => {
  millis = 0;
  verdict = valid();
  asked = [];
});

describe("bearer tokens", () => {
  test("name their caller and roles", async () => {
    const credential = { kind: "token", ref: "a1" };
    expect(await tokens().identify("t")).toEqual({ name: "pat", roles: ["viewer"], credential });
  });

  test("are verified once per cache time, also when many calls come at once", async () => {
    const { identify } = tokens();
    await Promise.all([identify("t"), identify("t"), identify("t")]);
    await identify("t");
    expect(asked).toEqual(["t"]);
    millis = 5_000;
    await identify("t");
    expect(asked).toEqual(["t", "t"]);
  });

  test("stop working within the cache time after a revocation elsewhere, and at once after one here", async () => {
    const bearer = tokens();
    await bearer.identify("t");
    verdict = { status: "revoked", at: new Date(start) };
    await expect(bearer.identify("t")).resolves.toBeDefined();
    bearer.forget("other");
    await expect(bearer.identify("t")).resolves.toBeDefined();
    bearer.forget("a1");
    await expect(bearer.identify("t")).rejects.toMatchObject({
      kind: "unauthenticated",
      message: expect.stringContaining("revoked at 2025-01-01"),
    });
  });

  test("are not cached from an answer that was under way when they were revoked", async () => {
    const answers: ((answer: TokenVerdict) => void)[] = [];
    const verify = () => new Promise<TokenVerdict>((resolve) => void answers.push(resolve));
    const bearer = createBearerTokens({ clock, known: [], cacheFor: seconds(5), verify });
    const early = bearer.identify("t");
    bearer.forget("a1");
    const late = bearer.identify("t");
    answers[0]?.(valid());
    answers[1]?.({ status: "revoked", at: new Date(start) });
    await early;
    await expect(late).rejects.toThrow("revoked");
    const after = bearer.identify("t");
    answers[2]?.({ status: "revoked", at: new Date(start) });
    await expect(after).rejects.toThrow("revoked");
  });

  test("expire also while they are cached", async () => {
    const { identify } = tokens();
    verdict = valid(new Date(start + 1_000));
    await identify("t");
    millis = 1_000;
    await expect(identify("t")).rejects.toThrow("valid until 2025-01-01T00:00:01.000Z");
    expect(asked).toHaveLength(1);
  });

  test("that are unknown are refused each time, and never repeated in the error", async () => {
    const { identify } = tokens();
    verdict = { status: "unknown" };
    const error = await identify("hunter2").catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      kind: "unauthenticated",
      detail: { next: expect.stringContaining("MILLWRIGHT_TOKEN") },
    });
    expect(JSON.stringify(error) + String(error)).not.toContain("hunter2");
    verdict = valid();
    await expect(identify("hunter2")).resolves.toBeDefined();
  });

  test("of the configuration are known by their hash, without asking the store", async () => {
    const { identify } = tokens([
      { name: "ci", roles: ["operator"], sha256: sha256("one") },
      { name: "scraper", roles: ["viewer"], sha256: sha256("two") },
    ]);
    expect(await identify("two")).toMatchObject({ name: "scraper", roles: ["viewer"] });
    expect(asked).toEqual([]);
  });

  test("are not trusted longer after the store failed", async () => {
    let fail = true;
    const { identify } = createBearerTokens({
      clock,
      known: [],
      cacheFor: seconds(5),
      verify: async () => {
        if (fail) throw new Error("the database is away");
        return valid();
      },
    });
    await expect(identify("t")).rejects.toThrow("the database is away");
    fail = false;
    await expect(identify("t")).resolves.toMatchObject({ name: "pat", roles: ["viewer"] });
  });
});
