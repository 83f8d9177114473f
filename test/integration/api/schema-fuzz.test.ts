import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { DescMethod } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { servedMethods } from "../../../scripts/generate/served-services.ts";
import { loadConfig } from "../../../src/config.ts";
import { type Server, startServer } from "../../../src/wiring/server.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { type Ended, type FuzzCalls, openFuzzCalls } from "../../support/fuzz/calls.ts";
import { type JsonSchema, randomJson, type Schemas } from "../../support/fuzz/json-schema.ts";
import { binaryOf, type Fuzz, jsonTextOf, randomMessage } from "../../support/fuzz/messages.ts";
import { Random } from "../../support/fuzz/random.ts";
import { Values } from "../../support/fuzz/values.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { RecordingLog } from "./api-under-test.ts";

/**
 * Requests that are made from the schemas, good and bad, to every method over every protocol and to every route, as an administrator. None
 * of them may crash the server or be answered as a bug of ours, and what is served must not pile up.
 */

const SEED = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** Each round calls everything once. FUZZ_ROUNDS=100 looks longer. */
const ROUNDS = Number(process.env.FUZZ_ROUNDS ?? 4);
const AT_ONCE = 8;
const MOST_GROWTH = 24 * 2 ** 20;

let database: TestDatabase;
let directory: string;
let server: Server;
let calls: FuzzCalls;
const log = new RecordingLog();

beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "millwright-fuzz-"));
  const token = "token-of-the-fuzz";
  const sha256 = createHash("sha256").update(token).digest("hex");
  const file = join(directory, "millwright.json");
  writeFileSync(file, JSON.stringify({ auth: { tokens: [{ name: "fuzz", roles: ["admin"], sha256 }] } }));
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
  };
  const { config } = loadConfig({ env, argv: ["--config", file], profile: "serve" });
  server = await startServer({ config, log, version: "0.0.0", signal: new AbortController().signal });
  calls = openFuzzCalls(server.grpcAddress, server.httpUrl, token);
});
afterAll(async () => {
  calls.close();
  await server.stop();
  await database.drop();
  rmSync(directory, { recursive: true });
});

/** Never right: our mistake, or an answer that the protocol does not know. What this server cannot do, or reach, is said with a code of its own. */
const IS_FAULT = /^(internal|unknown|data_loss|broken|code .*|HTTP 5\d\d)$/;
/** A route says so where the server lacks something: 501 is unsupported, 502 to 504 are of others. */
const IS_OF_OTHERS = /^HTTP (501|503)$/;

interface Shot {
  readonly what: string;
  readonly request: string;
  readonly ended: Ended;
}

type Fire = (fuzz: Fuzz) => Promise<Shot>;

const shotsOf = (method: DescMethod): Fire[] => {
  const what = `${method.parent.typeName}/${method.name}`;
  const request = (fuzz: Fuzz) => randomMessage(fuzz, method.input);
  const binary =
    (name: string, call: (body: Uint8Array) => Promise<Ended>): Fire =>
    async (fuzz) => {
      const body = binaryOf(fuzz, method.input, request(fuzz));
      return { what: `${name} ${what}`, request: Buffer.from(body).toString("base64"), ended: await call(body) };
    };
  const isBidi = method.methodKind === "bidi_streaming";
  return [
    binary("grpc", (body) => calls.grpc(method, body)),
    ...(isBidi
      ? []
      : [
          binary("grpc-web", (body) => calls.grpcWeb(method, body)),
          binary("connect", (body) => calls.connectProto(method, body)),
          async (fuzz: Fuzz) => {
            const text = jsonTextOf(fuzz, method.input, request(fuzz));
            return { what: `json ${what}`, request: text, ended: await calls.connectJson(method, text) };
          },
        ]),
  ];
};

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: JsonSchema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> };
}
interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Schemas };
}

function shotsOfRoutes({ paths, components: { schemas } }: OpenApi): Fire[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(
      ([verb, operation]): Fire =>
        async (fuzz) => {
          const textFor = (schema: JsonSchema) => String(randomJson(fuzz, schemas, schema) ?? "");
          const given = (operation.parameters ?? []).filter(
            ({ in: place }) => place === "path" || fuzz.random.chance(0.5),
          );
          const names = new Map(
            given.filter(({ in: place }) => place === "path").map(({ name }) => [name, fuzz.values.text(name)]),
          );
          const query = new URLSearchParams(
            given
              .filter(({ in: place }) => place === "query")
              .map(({ name, schema }): [string, string] => [name, textFor(schema).toWellFormed()]),
          );
          const at = path.replace(/\{(\w+)\}/g, (_, name: string) =>
            encodeURIComponent((names.get(name) ?? "x").toWellFormed()),
          );
          const schema = operation.requestBody?.content["application/json"]?.schema;
          const body = schema === undefined ? undefined : JSON.stringify(randomJson(fuzz, schemas, schema));
          const target = `${at}${query.size > 0 ? `?${query}` : ""}`;
          const request = `${target} ${body ?? ""}`;
          return { what: `rest ${verb} ${path}`, request, ended: await calls.rest(verb.toUpperCase(), target, body) };
        },
    ),
  );
}

const broken = (message: string): Shot => ({ what: "a call", request: "", ended: { code: "broken", message } });

const collect = (): number => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  gc();
  gc();
  return process.memoryUsage().heapUsed;
};

test("no request that a schema can make is answered as a bug, ends the server, or stays in memory", async () => {
  console.log(`schema fuzz: FUZZ_SEED=${SEED} FUZZ_ROUNDS=${ROUNDS}`);
  const random = new Random(SEED);
  const fuzz: Fuzz = { random, values: new Values(random) };
  const document = (await (await fetch(`${server.httpUrl}/api/v1/openapi.json`)).json()) as OpenApi;
  const fires = [...servedMethods().flatMap(shotsOf), ...shotsOfRoutes(document)];
  const faults: string[] = [];
  const codes = new Map<string, number>();
  const memory: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const pending = fires.values();
    const work = async () => {
      for (const fire of pending) {
        const { what, request, ended } = await fire(fuzz).catch((error: unknown) => broken(String(error)));
        codes.set(ended.code, (codes.get(ended.code) ?? 0) + 1);
        if (ended.answer !== undefined) fuzz.values.learn(ended.answer);
        if (IS_FAULT.test(ended.code) && !IS_OF_OTHERS.test(ended.code))
          faults.push(`${what}: ${ended.code} ${ended.message} <= ${request.slice(0, 2_000)}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    memory.push(collect());
    console.log(
      `schema fuzz: round ${round + 1}, ${Math.round((memory.at(-1) ?? 0) / 2 ** 20)} MB, ${faults.length} faults`,
    );
    log.lines.splice(0, log.lines.length, ...log.lines.filter(({ level }) => level === "error"));
  }
  console.log(`schema fuzz: ${JSON.stringify(Object.fromEntries(codes))}`);
  expect(faults).toEqual([]);
  expect(
    log.lines.filter(({ level }) => level === "error").map(({ message, fields }) => `${message} ${String(fields.err)}`),
  ).toEqual([]);
  expect(codes.get("ok")).toBeGreaterThan(fires.length / 20); // or nothing was tried in earnest
  // The first rounds fill caches and compile code.
  expect((memory.at(-1) ?? 0) - (memory[1] ?? 0), memory.join(" ")).toBeLessThan(MOST_GROWTH);
  expect((await fetch(`${server.httpUrl}/readyz`)).status).toBe(200);
}, 300_000);
