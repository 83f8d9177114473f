import { expect, test } from "vitest";
import { AppError } from "../../kernel/errors.ts";
import { SignInThrottle } from "./sign-in-throttle.ts";

const token = (id: number, secret: string) => `mw_${id.toString(16).padStart(16, "0")}_${secret}`;
const good = token(1, "good");
const jwtOf = (sub: string, signature: string) =>
  `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from(JSON.stringify({ sub })).toString("base64url")}.${signature}`;

function throttleUnderTest() {
  const time = { now: 0 };
  const tried: string[] = [];
  const refused: string[] = [];
  const throttle = new SignInThrottle({
    failedSignIns: 5,
    countedAs: (address) => (address === "127.0.0.1" ? undefined : address),
    clock: { monotonic: () => time.now },
    refused: (by) => refused.push(by),
  });
  const signIn = async (bearer: string, address: string | null = "192.0.2.1") =>
    throttle
      .guard({ address, bearer }, async () => {
        tried.push(bearer);
        if (bearer === "database is away") throw new AppError("unavailable", "away");
        if (bearer !== good) throw new AppError("unauthenticated", "not known here");
        return "kim";
      })
      .catch((error: AppError) => error.kind);
  return { throttle, signIn, tried, refused, time };
}

test("who guesses from one address is not tried any more, until time has passed", async () => {
  const { signIn, tried, refused, time } = throttleUnderTest();
  for (let n = 0; n < 100; n += 1) await signIn(token(n + 10, "guess"));
  expect(tried).toHaveLength(5);
  expect(new Set(refused)).toEqual(new Set(["address"]));
  expect(await signIn(token(200, "guess"), "192.0.2.2")).toBe("unauthenticated");
  time.now += 12_000;
  expect(await signIn(token(201, "guess"))).toBe("unauthenticated");
  expect(await signIn(token(202, "guess"))).toBe("exhausted");
});

test("who fails under the name of another keeps its owner out nowhere else, whether a JWT claims it or the id of a token", async () => {
  const { signIn, tried, refused } = throttleUnderTest();
  for (let n = 0; n < 50; n += 1) await signIn(jwtOf("kim", `forged-${n}`));
  for (let n = 0; n < 50; n += 1) await signIn(token(1, `forged-${n}`), "192.0.2.3");
  expect(tried).toHaveLength(6);
  expect(new Set(refused)).toEqual(new Set(["name"]));
  expect(await signIn(jwtOf("kim", "another"), "192.0.2.9")).toBe("unauthenticated");
  expect(await signIn(good, "192.0.2.9")).toBe("kim");
});

test("who guesses under one name leaves others at the address their sign-ins", async () => {
  const { signIn, refused } = throttleUnderTest();
  for (let n = 0; n < 50; n += 1) await signIn(token(7, `guess-${n}`));
  expect(new Set(refused)).toEqual(new Set(["name"]));
  expect(await signIn(good)).toBe("kim");
});

test("names from many addresses are no more than what each address may claim", async () => {
  const { signIn, tried } = throttleUnderTest();
  for (let n = 0; n < 50; n += 1) await signIn(token(7, `guess-${n}`), `192.0.2.${n}`);
  expect(tried).toHaveLength(50);
});

test("whose credentials were good before are let in beside who guesses; this host is not counted by its address", async () => {
  const { signIn } = throttleUnderTest();
  expect(await signIn(good)).toBe("kim");
  for (let n = 0; n < 50; n += 1) await signIn(token(n + 1, `guess-${n}`));
  expect(await signIn(good)).toBe("kim");
  expect(await signIn(token(2, "first time"))).toBe("exhausted");
  for (let n = 0; n < 50; n += 1) expect(await signIn(token(100 + n, "x"), "127.0.0.1")).toBe("unauthenticated");
});

test("a program that goes on with a token that is good no more locks nobody out", async () => {
  const { throttle, signIn } = throttleUnderTest();
  const old = () =>
    throttle
      .guard({ address: "192.0.2.1", bearer: "an old one" }, async () => {
        throw new AppError("unauthenticated", "revoked");
      })
      .catch((error: AppError) => error.kind);
  for (let n = 0; n < 50; n += 1) expect(await old()).toBe("unauthenticated");
  expect(throttle.fullest()).toBe(1);
  expect(await signIn(good)).toBe("kim");
});

test("a database that is away is nobody's failed sign-in", async () => {
  const { throttle, signIn, tried } = throttleUnderTest();
  for (let n = 0; n < 20; n += 1) expect(await signIn("database is away")).toBe("unavailable");
  expect(tried).toHaveLength(20);
  expect(throttle.fullest()).toBe(0);
});
