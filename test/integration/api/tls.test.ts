import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import { SystemService } from "../../../contract/millwright/v1/system_pb.js";
import { callerKey } from "../../../src/api/transport/interceptors.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type ApiUnderTest, startApi } from "./api-under-test.ts";

interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

const run = promisify(execFile);
const hasOpenssl = await run("openssl", ["version"]).then(
  () => true,
  () => false,
);

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "millwright-tls-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Self-signed: whoever is given the certificate as CA trusts it, nobody else does. */
async function keyPair(commonName: string): Promise<KeyPair> {
  const [cert, key] = [join(directory, `${commonName}.crt`), join(directory, `${commonName}.key`)];
  const subject = ["-subj", `/CN=${commonName}`, "-addext", "subjectAltName=IP:127.0.0.1"];
  await run("openssl", [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-days",
    "2",
    "-keyout",
    key,
    "-out",
    cert,
    ...subject,
  ]);
  return { cert: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
}

describe.skipIf(!hasOpenssl)(needing("with TLS on both ports", hasOpenssl ? "" : "openssl"), () => {
  let api: ApiUnderTest | undefined;
  afterEach(() => api?.close());

  async function start() {
    const [server, ann, mallory] = await Promise.all([keyPair("server"), keyPair("ann"), keyPair("mallory")]);
    api = await startApi({
      tls: { ...server, clientCa: ann.cert },
      authenticate: async (_, { certificate, certificateError, address }) => ({
        name: certificate?.subject.CN?.toString() ?? certificateError,
        roles: [],
        address,
      }),
      routes: (router) =>
        void router.service(SystemService, {
          getSystem: (_, { values }) => ({
            caller: {
              name: values.get(callerKey).name ?? "nobody",
              roles: [values.get(callerKey).address ?? "nowhere"],
            },
          }),
        }),
      http: (app) => void app.get("/healthz", async () => "ok"),
    });
    const { grpcAddress, httpUrl } = api;
    const whoOver = async (port: "gRPC" | "HTTP", client?: KeyPair) => {
      const nodeOptions = { ca: server.cert, ...client };
      const transport =
        port === "gRPC"
          ? createGrpcTransport({ baseUrl: `https://${grpcAddress}`, nodeOptions })
          : createConnectTransport({ baseUrl: httpUrl, httpVersion: "1.1", nodeOptions });
      const { caller } = await createClient(SystemService, transport).getSystem({});
      return [caller?.name, caller?.roles[0]];
    };
    return { server, ann, mallory, httpUrl, whoOver };
  }

  test.each(["gRPC", "HTTP"] as const)(
    "a verified client certificate names the caller on the %s port, and none is needed",
    async (port) => {
      const { ann, whoOver } = await start();
      expect(await whoOver(port, ann)).toEqual(["ann", "127.0.0.1"]);
      expect(await whoOver(port)).toEqual(["nobody", "127.0.0.1"]);
    },
  );

  test.each(["gRPC", "HTTP"] as const)(
    "a certificate of another authority counts for nothing on the %s port, and the reason is known",
    async (port) => {
      const { mallory, whoOver } = await start();
      expect(await whoOver(port, mallory)).toEqual(["DEPTH_ZERO_SELF_SIGNED_CERT", "127.0.0.1"]);
    },
  );

  test("REST is served over HTTPS, and closing ends its idle connections at once", async () => {
    const { server, httpUrl } = await start();
    expect(httpUrl).toMatch(/^https:/);
    const answer = await new Promise<string>((resolve, reject) =>
      request(`${httpUrl}/healthz`, { ca: server.cert }, (response) => text(response).then(resolve, reject))
        .on("error", reject)
        .end(),
    );
    expect(answer).toBe("ok");
  });
});
