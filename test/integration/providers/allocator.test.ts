import { afterEach, expect, test } from "vitest";
import { describeAllocator } from "../../../src/capabilities/conformance/allocator.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { createHttpAllocator, type HttpAllocatorOptions } from "../../../src/providers/allocator/http-allocator.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { startAllocatorServer } from "../../support/fleet/allocator-server.ts";

const TOKEN = "allocator-secret-token";
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function started(more: Partial<HttpAllocatorOptions> = {}) {
  const server = await startAllocatorServer(TOKEN);
  const allocator = createHttpAllocator({ url: server.url, token: TOKEN, gateway: createBmcGateway(), ...more });
  ends.push(server.stop, () => allocator.close());
  return { ...server, allocator };
}

describeAllocator("over HTTP", started);

const order = { id: "fa-1", node: "fn-1", hostname: "gpu-1", tenant: "team-a" };

test("a token that is refused is told as that, and stands in no message", async () => {
  const { allocator, refused } = await started({ token: "another-secret" });
  const asked = allocator.provision(order, aCall());
  await expect(asked).rejects.toMatchObject({ code: "credentials_rejected" });
  expect(refused).toEqual(["Bearer another-secret"]);
  await expect(asked).rejects.not.toThrow("another-secret");
});

test("an address outside the allowed networks is not called", async () => {
  const { allocator, wishes } = await started({ mayReach: (address) => address !== "127.0.0.1" });
  await expect(allocator.provision(order, aCall())).rejects.toMatchObject({ code: "address_not_allowed" });
  expect(await wishes()).toEqual([]);
});

test.each([
  ["no JSON", 200, "<html>"],
  ["a state that there is not", 200, JSON.stringify({ state: "maybe" })],
  ["more than an answer may be", 200, JSON.stringify({ state: "done", message: "x".repeat(100_000) })],
])("an answer that is %s is none", async (_what, status, body) => {
  const { allocator, answersNext } = await started();
  answersNext(status, body);
  await expect(allocator.provision(order, aCall())).rejects.toMatchObject({ code: "protocol" });
});

test("what it says of a refusal is passed on", async () => {
  const { allocator, refusesNext } = await started();
  await refusesNext();
  await expect(allocator.provision(order, aCall())).rejects.toThrow("the tenant is not known");
});
