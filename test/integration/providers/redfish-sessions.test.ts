import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { createCertificate } from "../../../simulator/certificate/certificate.ts";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { createRedfishClient, type RedfishClient } from "../../../src/providers/redfish/client.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";

const SESSIONS = "/redfish/v1/SessionService/Sessions";
const THING = "/redfish/v1/thing";
const NO_BASIC = { disposition: "retry", family: "busy", message: expect.stringContaining("takes no Basic") };
const WITHOUT_SESSION = { disposition: "retry", family: "busy", status: 503 };

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

interface Bmc {
  readonly target: BmcTarget;
  /** Method and path of all that came, with what it was signed in by. */
  readonly requests: string[];
  /** What it answers to those who want a session. */
  sessionStatus: number;
  takesBasic: boolean;
  showCertificate(): void;
}

async function aBmc(scheme: "http" | "https" = "http"): Promise<Bmc> {
  const requests: string[] = [];
  const bmc = { requests, sessionStatus: 503, takesBasic: false };
  const answer = ({ method, url, headers }: IncomingMessage, response: ServerResponse) => {
    if (url === "/redfish/v1/") return response.end(JSON.stringify({ Links: { Sessions: { "@odata.id": SESSIONS } } }));
    const token = headers["x-auth-token"];
    const by = headers.authorization === undefined ? (token === undefined ? "" : " by session") : " by Basic";
    requests.push(`${method} ${url}${by}`);
    if (method === "DELETE") return response.writeHead(204).end();
    if (url === SESSIONS) {
      const made = bmc.sessionStatus === 201 ? { "x-auth-token": "token-4711", location: `${SESSIONS}/1` } : {};
      return response.writeHead(bmc.sessionStatus, made).end("{}");
    }
    const isKnown = token === "token-4711" || (by === " by Basic" && bmc.takesBasic);
    return response.writeHead(isKnown ? 200 : 401).end("{}");
  };
  const aCertificate = () => createCertificate({ addresses: ["127.0.0.1"], now: new Date() });
  const tls = createTlsServer(aCertificate(), answer);
  const server = scheme === "https" ? tls : createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUps.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const target: BmcTarget = {
    address: "127.0.0.1",
    port,
    scheme,
    username: "root",
    password: "canary-4711",
    trust: scheme === "https" ? { mode: "pin" } : { mode: "off" },
  };
  return Object.assign(bmc, { target, showCertificate: () => tls.setSecureContext(aCertificate()) });
}

function aClient(clock: Clock = systemClock): RedfishClient {
  const gateway = createBmcGateway();
  const client = createRedfishClient({ gateway, clock });
  cleanUps.push(() => client.close().then(() => gateway.close()));
  return client;
}

const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error as Error,
  );

describe("a BMC that has no session to give and takes no Basic", () => {
  test("is busy for as long as that lasts, and is not sent the password with a read again", async () => {
    const bmc = await aBmc();
    const client = aClient();
    const read = () => client.get(bmc.target, THING, aCall());
    expect(await failureOf(read())).toMatchObject(NO_BASIC);
    for (let count = 0; count < 3; count += 1) expect(await failureOf(read())).toMatchObject(WITHOUT_SESSION);
    expect(bmc.requests.filter((request) => request.endsWith("by Basic"))).toHaveLength(1);
    bmc.sessionStatus = 201;
    expect((await read()).resource).toEqual({});
  });

  test("is not sent the password by each of those who ask at once: should it be wrong, the account would be locked", {
    tags: "race",
  }, async () => {
    const bmc = await aBmc();
    const client = aClient();
    const asked = Array.from({ length: 8 }, () => failureOf(client.get(bmc.target, THING, aCall())));
    for (const failure of await Promise.all(asked)) expect(failure).toMatchObject({ family: "busy" });
    expect(bmc.requests.filter((request) => request.endsWith("by Basic"))).toHaveLength(1);
  });

  test("has rejected the credentials once it says so to those who want a session", async () => {
    const bmc = await aBmc();
    const client = aClient();
    const read = () => failureOf(client.get(bmc.target, THING, aCall()));
    expect(await read()).toMatchObject(NO_BASIC);
    bmc.sessionStatus = 401;
    for (let count = 0; count < 4; count += 1) expect(await read()).toMatchObject({ family: "keeps_out" });
    expect(bmc.requests.filter((request) => request === `POST ${SESSIONS}`)).toHaveLength(1 + 2);
  });

  test("may take it with other credentials, and with the same after a while", async () => {
    let jumped = 0;
    const bmc = await aBmc();
    const client = aClient({ ...systemClock, monotonic: () => systemClock.monotonic() + jumped });
    const read = (password = bmc.target.password) => failureOf(client.get({ ...bmc.target, password }, THING, aCall()));
    expect(await read()).toMatchObject(NO_BASIC);
    bmc.takesBasic = true;
    expect(await read()).toMatchObject(WITHOUT_SESSION);
    expect(await read("changed")).toBeUndefined();
    jumped = minutes(16);
    expect(await read()).toBeUndefined();
  });
});

describe("signing out", () => {
  const aPinnedSession = async () => {
    const bmc = await aBmc("https");
    bmc.sessionStatus = 201;
    const client = aClient();
    const { certificateFingerprint = "" } = await client.get(bmc.target, THING, aCall());
    const pinned: BmcTarget = { ...bmc.target, trust: { mode: "pin", fingerprint256: certificateFingerprint } };
    return { bmc, client, pinned };
  };
  const signOuts = ({ requests }: Bmc) => requests.filter((request) => request.startsWith("DELETE"));

  test("gives the session back to the BMC that gave it", async () => {
    const { bmc, client, pinned } = await aPinnedSession();
    await client.get(pinned, THING, aCall());
    await client.close();
    expect(signOuts(bmc)).toEqual([`DELETE ${SESSIONS}/1 by session`]);
  });

  test("sends nothing to whoever else answers there since the certificate was pinned", async () => {
    const { bmc, client, pinned } = await aPinnedSession();
    await client.get(pinned, THING, aCall());
    bmc.showCertificate();
    await client.close();
    expect(signOuts(bmc)).toEqual([]);
  });

  test("sends nothing to whoever else answers there, also before the certificate was pinned", async () => {
    const { bmc, client } = await aPinnedSession();
    bmc.showCertificate();
    await client.close();
    expect(signOuts(bmc)).toEqual([]);
  });

  test("shows the session to no other certificate, though that one is pinned by now, and signs in again", async () => {
    const { bmc, client, pinned } = await aPinnedSession();
    await client.get(pinned, THING, aCall());
    bmc.showCertificate();
    const { certificateFingerprint = "" } = await aClient().get(bmc.target, THING, aCall());
    bmc.requests.length = 0;
    await client.get({ ...bmc.target, trust: { mode: "pin", fingerprint256: certificateFingerprint } }, THING, aCall());
    expect(bmc.requests[0]).toMatch(/^POST /);
    expect(signOuts(bmc)).toEqual([]);
  });

  test("goes by the trust of now, not by that of the first sign-in", async () => {
    const bmc = await aBmc("https");
    bmc.sessionStatus = 201;
    const client = aClient();
    const unchecked: BmcTarget = { ...bmc.target, trust: { mode: "off" } };
    const { certificateFingerprint = "" } = await client.get(unchecked, THING, aCall());
    await client.get({ ...bmc.target, trust: { mode: "pin", fingerprint256: certificateFingerprint } }, THING, aCall());
    bmc.showCertificate();
    await client.close();
    expect(signOuts(bmc)).toEqual([]);
  });
});
