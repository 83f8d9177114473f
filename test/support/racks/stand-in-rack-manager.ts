import {
  createSecureServer,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";

/**
 * A rack manager as section 4.1 of the specification has it, and nothing of ours: its wire format, its numbers and its methods are
 * written here from that table. Nothing happens in it by itself: the test says what becomes of each job.
 */
export type Api = "d" | "h";

const METHODS = {
  d: {
    update: "UpdateFirmwareByDeviceList",
    job: "GetFirmwareJobStatus",
    info: "GetDeviceInfoByDeviceList",
    configure: "ConfigureScaleUpFabricManager",
    fabric: "GetScaleUpFabricServicesStatus",
  },
  h: {
    update: "BatchUpdateFirmware",
    job: "GetFirmwareJobStatus",
    info: "BatchGetNodeDeviceInfo",
    configure: "ConfigureScaleUpFabricManager",
    fabric: "BatchGetScaleUpFabricServiceStatus",
  },
} as const;
type Call = keyof (typeof METHODS)["d"];

const NUMBERS = {
  d: { success: 0, failure: 1, compute: 1, power_shelf: 2, switch: 3, running: 1, completed: 2, failed: 3 },
  h: { success: 1, failure: 2, compute: 2, power_shelf: 3, switch: 4, running: 2, completed: 3, failed: 4 },
} as const;

export interface NodeSeen {
  readonly id: string;
  readonly rack: string;
  readonly type: number;
  readonly address: string;
  readonly mac: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
}

export interface BatchSeen {
  /** compute, switch or power_shelf, by the number of the first node. */
  readonly kind: string;
  readonly nodes: readonly NodeSeen[];
  /** For which type of node, which target, which file. */
  readonly files: readonly { readonly type: number; readonly target: string; readonly filename: string }[];
  readonly activate: boolean;
  readonly jobs: readonly string[];
}

interface Job {
  readonly id: string;
  readonly node: string;
  state: "running" | "completed" | "failed";
  description: string;
  error: string;
}

// The wire format: a tag is the field's number times eight and the way in which it is written, 0 for varints and 2 for bytes.

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
}
const int = (no: number, value: number): Buffer => Buffer.concat([varint(no * 8), varint(value)]);
const bytes = (no: number, value: Buffer): Buffer => Buffer.concat([varint(no * 8 + 2), varint(value.length), value]);
const text = (no: number, value: string): Buffer => bytes(no, Buffer.from(value));
const message = (no: number, ...parts: readonly Buffer[]): Buffer => bytes(no, Buffer.concat(parts));

class Read {
  readonly #fields = new Map<number, (number | Buffer)[]>();

  constructor(content: Buffer) {
    let at = 0;
    const next = (): number => {
      let value = 0;
      for (let factor = 1; ; factor *= 128) {
        const byte = content[at++];
        if (byte === undefined) throw new Error("cut off");
        value += (byte % 128) * factor;
        if (byte < 128) return value;
      }
    };
    while (at < content.length) {
      const tag = next();
      const values = this.#fields.get(Math.floor(tag / 8)) ?? [];
      if (tag % 8 === 0) values.push(next());
      else {
        const length = next();
        values.push(content.subarray(at, at + length));
        at += length;
      }
      this.#fields.set(Math.floor(tag / 8), values);
    }
  }

  all = (no: number): Read[] => (this.#fields.get(no) ?? []).map((each) => new Read(each as Buffer));
  in = (no: number): Read => this.all(no)[0] ?? new Read(Buffer.alloc(0));
  text = (no: number): string => String(this.#fields.get(no)?.[0] ?? "");
  int = (no: number): number => Number(this.#fields.get(no)?.[0] ?? 0);
}

const nodesIn = (set: Read): NodeSeen[] =>
  set.all(1).map((node) => {
    const endpoint = node.in(4);
    const userPass = endpoint.in(3).in(1);
    return {
      ...{ id: node.text(1), rack: node.text(2), type: node.int(3), port: endpoint.int(2) },
      ...{ address: endpoint.in(1).text(1), mac: endpoint.in(1).text(2) },
      ...{ username: userPass.text(1), password: userPass.text(2) },
    };
  });

export class StandInRackManager {
  api: Api;
  readonly batches: BatchSeen[] = [];
  readonly calls: string[] = [];
  readonly configured: { readonly node: string; readonly topology: string }[] = [];
  readonly jobs = new Map<string, Job>();
  /** Devices that it takes no job for, and why. */
  readonly refuses = new Map<string, string>();
  /** How it ends a call that it has taken: with an answer, never, or by cutting the connection. */
  ends: (call: Call | "unknown") => "answer" | "never" | "cut" = () => "answer";
  /** What it answers instead of the job's own message, as it is on the wire. */
  answersJob: ((job: string) => Buffer | undefined) | undefined;
  /** Awaited for each call, after it was taken and before it is answered; with the rack of its first device. */
  holds: (call: Call, rack: string) => Promise<void> | undefined = () => undefined;
  /** Whether a switch is a part of the fabric. */
  isConfigured: (node: string) => boolean = () => true;
  readonly #server: Http2Server;
  readonly #isSecure: boolean;
  readonly #sessions = new Set<ServerHttp2Session>();
  #jobsMade = 0;

  private constructor(api: Api, tls: { readonly cert: string; readonly key: string } | undefined) {
    this.api = api;
    this.#isSecure = tls !== undefined;
    this.#server = tls === undefined ? createServer() : createSecureServer({ ...tls, allowHTTP1: false });
    this.#server.on("session", (session) => void this.#sessions.add(session));
    this.#server.on("stream", (stream, headers) => {
      stream.on("error", () => {});
      void this.#serve(stream, String(headers[":path"] ?? ""));
    });
  }

  static async start(api: Api, tls?: { readonly cert: string; readonly key: string }): Promise<StandInRackManager> {
    const standIn = new StandInRackManager(api, tls);
    await new Promise<void>((resolve) => standIn.#server.listen(0, "127.0.0.1", resolve));
    return standIn;
  }

  get url(): string {
    return `${this.#isSecure ? "https" : "http"}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const session of this.#sessions) session.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** The batches of one kind of device that name this rack. */
  batchesOf = (rack: string, kind?: string): readonly BatchSeen[] =>
    this.batches.filter(
      ({ nodes, ...batch }) => nodes[0]?.rack === rack && (kind === undefined || batch.kind === kind),
    );

  jobOf(node: string): Job {
    const job = [...this.jobs.values()].findLast((each) => each.node === node);
    if (!job) throw new Error(`${node} has no job`);
    return job;
  }

  async #serve(stream: ServerHttp2Stream, path: string): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    const [, method] = /^\/rack_manager\.RackManager\/(\w+)$/.exec(path) ?? [];
    const call = (Object.keys(METHODS[this.api]) as Call[]).find((name) => METHODS[this.api][name] === method);
    this.calls.push(method ?? path);
    const request = new Read(Buffer.concat(chunks).subarray(5));
    const answer = call && (await this.#answer(call, request));
    if (call) await this.holds(call, (call === "configure" ? request.in(2) : request.in(2).in(1)).text(2));
    const end = this.ends(call ?? "unknown");
    if (end === "cut") stream.session?.destroy();
    if (end !== "answer" || stream.destroyed) return;
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": answer === undefined ? "12" : "0" }));
    if (answer === undefined) return void stream.end();
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(answer.length, 1);
    stream.end(Buffer.concat([prefix, answer]));
  }

  async #answer(call: Call, request: Read): Promise<Buffer> {
    const { success } = NUMBERS[this.api];
    switch (call) {
      case "update":
        return this.#update(request);
      case "job":
        return this.#job(request.text(2));
      case "info":
        return Buffer.concat([
          int(2, success),
          ...nodesIn(request.in(2)).map(({ id }, at) => message(4, text(1, id), int(3, at + 1), int(4, at))),
        ]);
      case "configure":
        this.configured.push({ node: request.in(2).text(1), topology: request.text(3) });
        return Buffer.concat([int(2, success), text(4, request.text(3)), int(5, 1), int(6, 1)]);
      case "fabric": {
        const services = nodesIn(request.in(2)).map(({ id }) => {
          const isPart = this.isConfigured(id);
          const info = `CONTROL_PLANE_STATE_${isPart ? "CONFIGURED" : "UNCONFIGURED"}`;
          const json = JSON.stringify({ status: isPart ? "ok" : "not ok", "addition-info": info, reason: "" });
          return message(3, text(1, id), message(2, text(1, json)));
        });
        return Buffer.concat([int(2, success), ...services]);
      }
    }
  }

  async #update(request: Read): Promise<Buffer> {
    const numbers = NUMBERS[this.api];
    const nodes = nodesIn(request.in(2));
    const kind =
      (["compute", "switch", "power_shelf"] as const).find((each) => numbers[each] === nodes[0]?.type) ?? "unknown";
    const files = request.all(3).flatMap((entry) =>
      entry
        .in(2)
        .all(1)
        .map((file) => ({ type: entry.int(1), target: file.text(1), filename: file.text(2) })),
    );
    const taken = nodes.filter(({ id }) => !this.refuses.has(id));
    const jobs = taken.map(({ id }): Job => {
      this.#jobsMade += 1;
      return { id: `rms-${this.#jobsMade}`, node: id, state: "running", description: "10 %", error: "" };
    });
    for (const job of jobs) this.jobs.set(job.id, job);
    const batch = { kind, nodes, files, activate: request.int(4) === 1, jobs: jobs.map(({ id }) => id) };
    this.batches.push(batch);
    const results = nodes.map(({ id }) => {
      const why = this.refuses.get(id);
      const code = why === undefined ? numbers.success : numbers.failure;
      return message(7, text(1, id), int(2, code), text(3, why ?? ""));
    });
    const isWhole = taken.length === nodes.length;
    return Buffer.concat([
      message(1, int(2, isWhole ? numbers.success : numbers.failure), ...results),
      ...jobs.map(({ id, node }) => message(2, text(1, node), text(2, id))),
    ]);
  }

  #job(id: string): Buffer {
    const { success, failure, ...states } = NUMBERS[this.api];
    const odd = this.answersJob?.(id);
    if (odd !== undefined) return odd;
    const job = this.jobs.get(id);
    if (job === undefined) return Buffer.concat([int(2, failure), text(3, id), text(9, "no such job")]);
    const told = [text(5, job.description), text(7, job.node), text(9, job.error)];
    return Buffer.concat([int(2, success), text(3, id), int(4, states[job.state]), ...told]);
  }
}
