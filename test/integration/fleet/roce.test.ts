import { describe, expect, test } from "vitest";
import type { MaasGate } from "../../../src/services/fleet/site-target.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, startInstalls } from "../installs/installs-under-test.ts";

/** Sites are recorded untried: nothing of it is called. */
const gate = { checkKey: () => {} } as unknown as MaasGate;
let api: InstallsUnderTest;
let count = 0;

beforeAll(async () => {
  api = await startInstalls({ maas: gate });
});
afterAll(() => api.close());

interface Assignment {
  readonly hostname: string;
  readonly links: readonly { readonly port: string; readonly subnet: string; readonly ip_address: string }[];
}

const link = (address: number, more: object = {}) => ({
  port: "ib0",
  subnet: "10.10.0.0/24",
  ip_address: `10.10.0.${address}`,
  ...more,
});
const node = (hostname: string, ...links: object[]) => ({ hostname, links });

async function aSite(): Promise<string> {
  const name = `roce-${++count}`;
  const url = "https://192.0.2.1:5443/MAAS";
  await api.ask("POST", "/api/v1/fleet/sites", { name, url, api_key: "a:b:c", skip_probe: true });
  return name;
}
const pathOf = (site: string) => `/api/v1/fleet/sites/${site}/roce`;
const set = (site: string, ...nodes: object[]) => api.call("PUT", pathOf(site), { nodes });
const list = (site: string) => api.ask<readonly Assignment[]>("GET", pathOf(site));

describe("RoCE assignments", () => {
  test("are kept by site and host name, whether or not there is such a node, and networks by their address", async () => {
    const site = await aSite();
    const other = await aSite();
    const given = [
      node("gpu-2", link(2)),
      node("gpu-1", link(1, { subnet: "10.10.0.77/24" }), link(3, { port: "ib1" })),
    ];
    expect((await set(site, ...given)).status).toBe(200);
    expect((await set(other, node("gpu-1", link(1)))).status).toBe(200);
    expect((await list(site)).map(({ hostname, links }) => ({ hostname, links }))).toEqual([
      node("gpu-1", link(1), link(3, { port: "ib1" })),
      node("gpu-2", link(2)),
    ]);
  });

  test("of a node replace those that it had, and leave those of others", async () => {
    const site = await aSite();
    await set(site, node("gpu-1", link(1), link(2, { port: "ib1" })), node("gpu-2", link(9)));
    await set(site, node("gpu-1", link(2)));
    expect((await list(site)).map(({ links }) => links)).toEqual([[link(2)], [link(9)]]);
    const events = await api.db.query(
      "select id, type from journal where kind = 'fleet_roce' and id like $1 order by id, version",
      [`${site}/%`],
    );
    expect(events).toEqual([
      { id: `${site}/gpu-1`, type: "created" },
      { id: `${site}/gpu-1`, type: "changed" },
      { id: `${site}/gpu-2`, type: "created" },
    ]);
  });

  test.each([
    [
      "an address outside its network",
      [node("gpu-5", link(1, { ip_address: "10.11.0.1" }))],
      422,
      "a network that holds",
    ],
    ["an address that is none", [node("gpu-5", link(1, { ip_address: "gpu-5" }))], 422, "must be an IP address"],
    ["a port twice", [node("gpu-5", link(5), link(6))], 422, "ib0 is named twice"],
    ["an address twice", [node("gpu-5", link(5)), node("gpu-6", link(5))], 422, "10.10.0.5 is named twice"],
    ["a node twice", [node("gpu-5", link(5)), node("gpu-5", link(6))], 422, "gpu-5 is named twice"],
    ["a host name that is none", [node("GPU 5", link(5))], 422, "letters a-z"],
    ["no link", [node("gpu-5")], 422, "between 1 and"],
    ["an address of another node", [node("gpu-5", link(5)), node("gpu-6", link(200))], 400, "belongs to taken"],
  ])("are refused with %s: nothing of the call is kept", async (_what, nodes, status, words) => {
    const site = await aSite();
    await set(site, node("taken", link(200)));
    const answer = await set(site, ...nodes);
    expect(answer.status, answer.text).toBe(status);
    expect(answer.text).toContain(words);
    expect((await list(site)).map(({ hostname }) => hostname)).toEqual(["taken"]);
  });

  test("keep their site, and can be removed", async () => {
    const site = await aSite();
    await set(site, node("gpu-1", link(1)));
    const kept = await api.call("DELETE", `/api/v1/fleet/sites/${site}`);
    expect(kept.status).toBe(400);
    expect(kept.text).toContain("the RoCE assignment of gpu-1 belongs to it");
    await api.ask("DELETE", `${pathOf(site)}/gpu-1`);
    expect((await api.call("DELETE", `${pathOf(site)}/gpu-1`)).status).toBe(404);
    await api.ask("DELETE", `/api/v1/fleet/sites/${site}`);
    expect((await set(site, node("gpu-1", link(1)))).status).toBe(404);
  });
});
