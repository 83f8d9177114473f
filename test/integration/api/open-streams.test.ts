import { Code, createClient } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { Health } from "../../../contract/grpc/health/v1/health_pb.js";
import { unauthenticated } from "../../../src/api/auth/identity.ts";
import { AppError } from "../../../src/kernel/errors.ts";
import { type Duration, hours, milliseconds } from "../../../src/kernel/time/duration.ts";
import { type ApiUnderTest, failureOf, startApi } from "./api-under-test.ts";

let api: ApiUnderTest | undefined;
afterEach(() => api?.close());

/** A stream that is open, whose caller is judged anew by `judge` each time. */
async function openStream(options: { every: Duration; validUntil?: Date; judge: (time: number) => void }) {
  let times = 0;
  api = await startApi({
    recheckStreamsEvery: options.every,
    async authenticate(_headers, { address }) {
      times += 1;
      options.judge(times);
      const { validUntil } = options;
      return { name: "pat", roles: ["viewer"], address, ...(validUntil !== undefined && { validUntil }) };
    },
  });
  const stop = new AbortController();
  const items = createClient(Health, api.grpc()).watch({}, { signal: stop.signal })[Symbol.asyncIterator]();
  await items.next();
  return { next: () => items.next(), times: () => times, leave: () => stop.abort() };
}

const revokedFrom = (time: number) => (asked: number) => {
  if (asked >= time) throw unauthenticated("the bearer token was revoked");
};

test("a stream ends when its caller may no longer call, with the reason", async () => {
  const stream = await openStream({ every: milliseconds(20), judge: revokedFrom(3) });
  expect(await failureOf(stream.next())).toMatchObject({
    code: Code.Unauthenticated,
    rawMessage: "the bearer token was revoked",
  });
  expect(stream.times()).toBe(3);
});

test("a stream ends when the credentials run out, without waiting for the next pass", async () => {
  const validUntil = new Date(Date.now() + 300);
  const stream = await openStream({
    every: hours(1),
    validUntil,
    judge: (time) => {
      if (time > 1 && new Date() >= validUntil) throw unauthenticated("the bearer token ran out"); // it gets in, however late
    },
  });
  expect(await failureOf(stream.next())).toMatchObject({ code: Code.Unauthenticated });
  expect(Date.now()).toBeGreaterThanOrEqual(validUntil.getTime());
});

test("after a revocation streams end at once", async () => {
  const stream = await openStream({ every: hours(1), judge: revokedFrom(2) });
  const ended = failureOf(stream.next());
  api?.recheckStreams();
  expect((await ended).code).toBe(Code.Unauthenticated);
});

test("nobody loses a stream because callers cannot be looked up for a while", async () => {
  const asked = Promise.withResolvers<void>();
  const stream = await openStream({
    every: milliseconds(10),
    judge: (time) => {
      if (time === 5) asked.resolve();
      if (time > 1 && time < 5) throw new AppError("unavailable", "the database cannot be reached");
    },
  });
  const next = stream.next();
  await asked.promise;
  api?.health.set(false);
  expect(await next).toMatchObject({ done: false });
  stream.leave();
});

test("a stream that has ended is not checked any more", async () => {
  const stream = await openStream({ every: hours(1), judge: () => {} });
  stream.leave();
  await failureOf(stream.next());
  await api?.log.line(({ fields }) => fields.method === "grpc.health.v1.Health/Watch");
  api?.recheckStreams();
  expect(stream.times()).toBe(1);
});
