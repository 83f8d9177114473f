import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import { Health } from "../../../contract/grpc/health/v1/health_pb.js";
import { seconds } from "../../../src/kernel/time/duration.ts";
import {
  callHeaders,
  connectRaw,
  END_HEADERS,
  END_STREAM,
  frame,
  HTTP2_BEGIN,
  header,
  type RawPeer,
} from "../../support/counterparts/raw-peer.ts";
import { eventually } from "../../support/eventually.ts";
import { type ApiUnderTest, startApi } from "./api-under-test.ts";

let api: ApiUnderTest;
const stopping = new AbortController();
const peers: RawPeer[] = [];
afterEach(async () => {
  for (const { socket } of peers.splice(0)) socket.destroy();
  await api.close();
});

async function begin(limits: Parameters<typeof startApi>[0] & object): Promise<void> {
  api = await startApi({ http: (app) => void app.get("/healthz", async () => ({ status: "alive" })), ...limits });
}

async function open(address: string, from = "127.0.0.2"): Promise<RawPeer> {
  const peer = await connectRaw(address, { from });
  peers.push(peer);
  return peer;
}

/** Writes a little now and then, until the connection is closed. */
async function drip({ socket, closed }: RawPeer, drop: () => Buffer, { every = 50 } = {}): Promise<void> {
  let isOpen = true;
  void closed.then(() => {
    isOpen = false;
  });
  while (isOpen) {
    socket.write(drop());
    await pause(every);
  }
}

async function answersOthers(): Promise<void> {
  const answer = await fetch(`${api.httpUrl}/healthz`);
  expect(answer.status).toBe(200);
  const { status } = await createClient(Health, api.grpc()).check({});
  expect(status).toBe(1);
}

describe("how many connections there are", () => {
  test("one address gets no more than its share, on each listener, and others are served", async () => {
    await begin({ limits: { connectionsPerAddress: 3 } });
    for (const address of [api.httpUrl, api.grpcAddress]) {
      const held = [await open(address), await open(address), await open(address)];
      await (await open(address)).closed;
      expect(held.every(({ socket }) => !socket.closed)).toBe(true);
      held[0]?.socket.destroy();
      await eventually(async () => !(await open(address)).socket.closed, { what: "the place is free again" });
    }
    await answersOthers();
    await api.log.line(({ fields }) => fields.limit === "connections_per_address" && fields.address === "127.0.0.2");
  });

  test("when all places are taken, a newcomer gets that of the oldest stranger, and who has signed in keeps theirs", async () => {
    await begin({
      limits: { connections: 10 },
      authenticate: async (_headers, { signedIn, address }) => {
        signedIn?.();
        return { name: "operator", roles: ["admin"], address };
      },
    });
    const operator = new Http2SessionManager(`http://${api.grpcAddress}`);
    const transport = createGrpcTransport({ baseUrl: `http://${api.grpcAddress}`, sessionManager: operator });
    const watch = createClient(Health, transport).watch({}, { signal: stopping.signal });
    const statuses = watch[Symbol.asyncIterator]();
    await statuses.next();
    const strangers: RawPeer[] = [];
    for (let n = 0; n < 40; n += 1) strangers.push(await open(api.grpcAddress, `127.0.1.${n}`));
    await Promise.all(strangers.slice(0, 20).map(({ closed }) => closed));
    await answersOthers();
    api.health.set(false);
    expect((await statuses.next()).value?.status).toBe(2);
    operator.abort();
  });
});

describe("a peer that takes its time", () => {
  const limits = { headersTimeout: seconds(1) };

  test("headers of HTTP/1.1 that come byte by byte end the connection", async () => {
    await begin({ limits });
    const peer = await open(api.httpUrl);
    peer.socket.write("GET /healthz HTTP/1.1\r\nx: ");
    await drip(peer, () => Buffer.from("a"));
    expect(peer.received().toString()).toMatch(/^HTTP\/1.1 408 /);
    await answersOthers();
  });

  test("so does a connection on which nothing is said", async () => {
    await begin({ limits });
    await Promise.all([(await open(api.httpUrl)).closed, (await open(api.grpcAddress)).closed]);
    await answersOthers();
  });

  test("and a preface of HTTP/2 that comes byte by byte", async () => {
    await begin({ limits });
    const rest = [...HTTP2_BEGIN];
    await drip(await open(api.grpcAddress), () => Buffer.from(rest.length > 20 ? [rest.shift() ?? 0] : []));
    await answersOthers();
  });

  test("and a header list of HTTP/2 that comes byte by byte", async () => {
    await begin({ limits });
    const peer = await open(api.grpcAddress);
    const list = Buffer.concat([callHeaders("/x"), header("x-more", "m".repeat(10_000))]);
    const bytes = [...frame({ type: "HEADERS", stream: 1, payload: list })];
    peer.socket.write(Buffer.concat([HTTP2_BEGIN, Buffer.from(bytes.splice(0, 20))]));
    await drip(peer, () => Buffer.from([bytes.shift() ?? 0]));
    await answersOthers();
  });

  test("a caller that is quiet, or slow between calls, keeps its connection", async () => {
    await begin({ limits });
    const watching = createClient(Health, api.grpc()).watch({}, { signal: stopping.signal })[Symbol.asyncIterator]();
    await watching.next();
    const sessions = new Http2SessionManager(`http://${api.grpcAddress}`);
    const client = createClient(
      Health,
      createGrpcTransport({ baseUrl: `http://${api.grpcAddress}`, sessionManager: sessions }),
    );
    for (let n = 0; n < 8; n += 1) {
      await client.check({});
      await pause(400);
      expect(sessions.state()).toBe("idle");
    }
    api.health.set(false);
    expect((await watching.next()).value?.status).toBe(2);
    sessions.abort();
  });

  test("a connection of HTTP/2 without calls is ended in order, and the next call opens another", async () => {
    await begin({ limits: { ...limits, idleSession: seconds(1) } });
    const sessions = new Http2SessionManager(`http://${api.grpcAddress}`);
    const client = createClient(
      Health,
      createGrpcTransport({ baseUrl: `http://${api.grpcAddress}`, sessionManager: sessions }),
    );
    await client.check({});
    await eventually(async () => sessions.state() === "closed", { what: "the connection is ended" });
    expect((await client.check({})).status).toBe(1);
    sessions.abort();
  });
});

describe("floods on one connection of HTTP/2", () => {
  /** One connection, and what it sends until it is ended. */
  async function flood(next: (n: number) => Buffer, { read = true } = {}): Promise<void> {
    const peer = await open(api.grpcAddress);
    if (!read) peer.socket.pause();
    peer.socket.write(HTTP2_BEGIN);
    let isOpen = true;
    void peer.closed.then(() => {
      isOpen = false;
    });
    for (let n = 0; isOpen; n += 1) {
      const goesOn = peer.socket.write(next(n));
      if (!goesOn) await Promise.race([peer.closed, new Promise((resolve) => peer.socket.once("drain", resolve))]);
      else if (n % 100 === 0) await pause(1);
    }
  }

  const call = (stream: number) =>
    frame({
      type: "HEADERS",
      flags: END_HEADERS | END_STREAM,
      stream,
      payload: callHeaders("/grpc.health.v1.Health/Check"),
    });

  test.each([
    [
      "calls that are begun and broken off",
      (n: number) =>
        Buffer.concat([call(2 * n + 1), frame({ type: "RST_STREAM", stream: 2 * n + 1, payload: Buffer.alloc(4) })]),
    ],
    ["pings", () => Buffer.concat(Array(100).fill(frame({ type: "PING", payload: Buffer.alloc(8) })))],
    ["settings", () => Buffer.concat(Array(100).fill(frame({ type: "SETTINGS" })))],
    [
      "a header list without end",
      (n: number) =>
        n === 0
          ? frame({ type: "HEADERS", stream: 1, payload: callHeaders("/x") })
          : frame({ type: "CONTINUATION", stream: 1, payload: header("x", "y".repeat(100)) }),
    ],
    [
      "empty data",
      (n: number) =>
        n === 0
          ? frame({
              type: "HEADERS",
              flags: END_HEADERS,
              stream: 1,
              payload: callHeaders("/grpc.health.v1.Health/Check"),
            })
          : frame({ type: "DATA", stream: 1 }),
    ],
  ])("%s end the connection", async (_, next) => {
    await begin({ limits: { headersTimeout: seconds(1) } });
    await flood(next);
    await answersOthers();
  });

  test("pings in portions that the library takes, on and on, end the connection", async () => {
    await begin({ limits: { headersTimeout: seconds(1) } });
    const peer = await open(api.grpcAddress);
    peer.socket.write(HTTP2_BEGIN);
    const portion = Buffer.concat(Array(200).fill(frame({ type: "PING", payload: Buffer.alloc(8) })));
    await drip(peer, () => portion, { every: 5 });
    await api.log.line(({ fields }) => fields.limit === "control_frames");
    await answersOthers();
  });

  test("pings whose answers nobody reads end the connection", async () => {
    await begin({ limits: { headersTimeout: seconds(1) } });
    await flood(() => Buffer.concat(Array(100).fill(frame({ type: "PING", payload: Buffer.alloc(8) }))), {
      read: false,
    });
    await answersOthers();
  });

  test("a huge header list ends its call or its connection, over HTTP/1.1 too", async () => {
    await begin({});
    const [one, two] = [await open(api.httpUrl), await open(api.grpcAddress)];
    one.socket.write(`GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(1_000_000)}`);
    await one.closed;
    const parts = Array.from({ length: 100 }, () =>
      frame({ type: "CONTINUATION", stream: 1, payload: header("x", "y".repeat(10_000)) }),
    );
    two.socket.write(
      Buffer.concat([HTTP2_BEGIN, frame({ type: "HEADERS", stream: 1, payload: callHeaders("/x") }), ...parts]),
    );
    await two.closed;
    await answersOthers();
  });
});
