import { createServer, type Server } from "node:http";
import { afterEach, expect, test } from "vitest";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { createBmcGateway } from "../transport/bmc-gateway.ts";
import { createRedfishClient } from "./client.ts";

const call = { signal: new AbortController().signal, subject: "test", mayTouchDevice: (wanted: Duration) => wanted };
let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** A BMC that changes a resource only for those who name its ETag; without one it has none to name. */
async function patchAt(etag: string | undefined) {
  const seen: (string | undefined)[] = [];
  server = createServer(({ method, headers }, response) => {
    if (method === "PATCH") {
      seen.push(headers["if-match"]);
      response.writeHead(headers["if-match"] === 'W/"1"' ? 204 : 412).end();
    } else response.writeHead(200, etag === undefined ? {} : { etag }).end("{}");
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const target: BmcTarget = {
    address: "127.0.0.1",
    port,
    scheme: "http",
    username: "root",
    password: "secret",
    trust: { mode: "off" },
  };
  const gateway = createBmcGateway();
  const client = createRedfishClient({ gateway });
  const changed = client.patch(target, "/redfish/v1/Systems/1", { LocationIndicatorActive: true }, call);
  const outcome = await changed.then(
    () => "changed",
    (error: unknown) => error,
  );
  await client.close();
  gateway.close();
  return { outcome, seen };
}

test("a BMC that insists on an ETag is given the one of just now", async () => {
  expect(await patchAt('W/"1"')).toEqual({ outcome: "changed", seen: [undefined, 'W/"1"'] });
});

test("a BMC that refuses the ETag that it gave is not asked again and again", async () => {
  const { outcome, seen } = await patchAt('"other"');
  expect(outcome).toMatchObject({ disposition: "fail", status: 412 });
  expect(seen).toEqual([undefined, '"other"']);
});

test("a BMC that insists on an ETag and gives none is not changed", async () => {
  const { outcome, seen } = await patchAt(undefined);
  expect(outcome).toMatchObject({ status: 412 });
  expect(seen).toEqual([undefined]);
});
