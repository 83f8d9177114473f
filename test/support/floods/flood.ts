import { randomBytes } from "node:crypto";
import http from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { createConnection, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** Run as a program of its own, so that what an attack costs is not the server's: `flood.ts <attack> <http url> <grpc host:port> <token>`. */
const [attack = "", httpUrl = "", grpcAddress = "", token = ""] = process.argv.slice(2);
const FROM = "127.0.0.2";
const PARALLEL = 32;

const AT_ONCE = 48;
const wide = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE, localAddress: FROM });
const agent = new http.Agent({ keepAlive: true, maxSockets: PARALLEL, localAddress: FROM });

/** Whatever the answer is: the attacker goes on. */
const send = (path: string, headers: http.OutgoingHttpHeaders, body = "", by = agent): Promise<void> =>
  new Promise((resolve) => {
    const method = body === "" ? "GET" : "POST";
    const request = http.request(`${httpUrl}${path}`, { method, agent: by, headers }, (answer) => {
      answer.resume().once("close", resolve);
    });
    request.once("error", () => resolve());
    request.end(body);
  });

async function onAndOn(act: () => Promise<void>, parallel = PARALLEL): Promise<void> {
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      for (;;) await act();
    }),
  );
}

function openSocket(address: string): Socket {
  const [host = "", port = ""] = address.split(/:(?=\d+$)/);
  return createConnection({ host, port: Number(port), localAddress: FROM }).on("error", () => {});
}

const frameOf = (json: object): Buffer => {
  const body = Buffer.from(JSON.stringify(json));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
};

/** Calls that are never read. With a window of nothing the server can send no byte of an answer. */
function openSession(): ClientHttp2Session {
  const session = connect(`http://${grpcAddress}`, {
    createConnection: () => openSocket(grpcAddress),
    settings: { initialWindowSize: 0 },
  });
  return session.on("error", () => {});
}

async function unreadCalls(path: string, message: object, bearer: string, every = 1): Promise<void> {
  let session = openSession();
  for (;;) {
    if (session.destroyed || session.closed) session = openSession();
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc+json",
      te: "trailers",
      ...(bearer !== "" && { authorization: `Bearer ${bearer}` }),
    });
    stream.on("error", () => {});
    stream.end(frameOf(message));
    await pause(every);
  }
}

const ATTACKS: Readonly<Record<string, () => Promise<void>>> = {
  async connections_per_address() {
    for (;;) {
      openSocket(new URL(httpUrl).host);
      await pause(2);
    }
  },
  async headers() {
    for (;;) {
      const socket = openSocket(grpcAddress);
      const [...preface] = "PRI * HTTP/2.0\r\n\r\nSM\r\n";
      const dripping = setInterval(() => socket.write(preface.shift() ?? ""), 200);
      socket.once("close", () => clearInterval(dripping));
      await pause(20);
    }
  },
  requests_per_caller: () =>
    onAndOn(() =>
      send(
        "/millwright.v1.RackService/ListRacks",
        { authorization: `Bearer ${token}`, "content-type": "application/json" },
        "{}",
      ),
    ),
  // Each a list of a thousand rows.
  calls_per_caller: () =>
    onAndOn(
      () =>
        send(
          "/millwright.v1.PlanCatalogService/ListPlans",
          { authorization: `Bearer ${token}`, "content-type": "application/json" },
          '{"pageSize":1000}',
          wide,
        ),
      AT_ONCE,
    ),
  requests_per_address: () => onAndOn(() => send("/api/v1/boot?mac=02:00:00:00:00:01", {})),
  failed_sign_ins: () =>
    onAndOn(() =>
      send("/api/v1/nodes", {
        authorization: `Bearer mw_${randomBytes(8).toString("hex")}_${randomBytes(32).toString("hex")}`,
      }),
    ),
  streams_per_address: () => unreadCalls("/grpc.health.v1.Health/Watch", {}, ""),
  streams_per_caller: () => unreadCalls("/millwright.v1.WatchService/Watch", { fromNow: true }, token),
  // Slowly: it is the memory that is to be filled, and not the processor's time.
  unread_bytes: () => unreadCalls("/millwright.v1.PlanCatalogService/ListPlans", { pageSize: 1_000 }, token, 100),
};

const run = ATTACKS[attack];
if (!run) throw new Error(`there is no attack ${attack}`);
await run();
