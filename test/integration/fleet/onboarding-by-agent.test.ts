import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { setProfile } from "../../../src/services/fleet/profiles.ts";
import { addSite } from "../../../src/services/fleet/sites.ts";
import { eventually } from "../../support/eventually.ts";
import { type FleetServer, startFleetServer } from "../../support/fleet/fleet-server.ts";
import { adminToken } from "../../support/processes/server-process.ts";
import { tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { startMaasSite } from "./maas-site.ts";

/** All of it: a server, a simulated MAAS, and the agent that its servers run once they are deployed. */
let it: FleetServer;
let site: Awaited<ReturnType<typeof startMaasSite>>;

/** Nodes are told where the server is before it listens. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

beforeAll(async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  it = await startFleetServer({
    MILLWRIGHT_HTTP_LISTEN: listen,
    MILLWRIGHT_FLEET_PUBLIC_URL: `http://${listen}`,
    MILLWRIGHT_BMC_ALLOWED_NETWORKS: "127.0.0.0/8",
  });
  site = await startMaasSite({ hosts: 1 });
});
afterAll(async () => {
  await site.stop();
  await it.close();
});

test("a node that nobody knew, onboarded over REST with its BMC account, is active once the agent of its system has enrolled", async () => {
  const [host] = site.hosts;
  if (!host) throw new Error("the site has no servers");
  const { deps, httpUrl } = it.server;
  const how = { description: "", retainInMaas: false, allowHttp: true, skipProbe: false };
  await addSite(deps, tester, { name: "sim", url: site.url, apiKey: site.apiKey, ...how });
  await setProfile(deps, tester, { site: "sim", name: "gpu" });
  const authorization = `Bearer ${await adminToken(it.database)}`;
  const asked = { request_id: randomUUID(), site: "sim", profile: "gpu", sku: "gpu8", hostname: "gpu-1" };
  const answer = await fetch(`${httpUrl}/api/v1/fleet/nodes`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({
      ...{ ...asked, ipmi_ip: host.ipmi_address },
      ...{ bmc_username: host.ipmi_username, bmc_password: host.ipmi_password },
    }),
  });
  expect(answer.ok, await answer.clone().text()).toBe(true);
  const shown = async () =>
    (await fetch(`${httpUrl}/api/v1/fleet/nodes/gpu-1`, { headers: { authorization } })).json() as Promise<unknown>;
  await eventually(async () => JSON.stringify(await shown()).includes('"state":"active"'), {
    ...{ what: "the node is active", within: 50_000 },
    seen: async () => JSON.stringify(await shown()),
  });
  expect(await shown()).toMatchObject({ data: { job: { state: "completed", failure_class: "" } } });
});
