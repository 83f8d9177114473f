import { randomUUID } from "node:crypto";
import { type IncomingMessage, request } from "node:http";
import { text as textOf } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { startTemporarySimulator, temporaryDataDir } from "../testing/temporary-simulator.ts";
import { parseForm } from "./form.ts";
import { type MaasStatus, mayFollow, nameOf, STATUSES } from "./statuses.ts";

interface Told {
  readonly url: string;
  readonly api_key: string;
  readonly hosts: readonly {
    readonly id: string;
    readonly ipmi_address: string;
    readonly ipmi_mac: string;
    readonly ipmi_username: string;
    readonly ipmi_password: string;
    readonly mac: string;
  }[];
}
interface Shown {
  readonly system_id: string;
  readonly status: MaasStatus;
  readonly status_name: string;
  readonly [field: string]: unknown;
}

const STILL = 0.01;

/** A client of its own: what it signs and how it writes forms is written down here once more. */
async function opened(
  site: string,
  more: { readonly dataDir?: string; readonly told?: Told; readonly speed?: number } = {},
) {
  const simulator = await startTemporarySimulator({
    site,
    speed: more.speed ?? STILL,
    ...(more.dataDir !== undefined && { dataDir: more.dataDir }),
  });
  const told = more.told ?? (await simulator.control<Told>("GET", "/maas")).body;
  const [consumer, token, secret] = told.api_key.split(":");
  const signed = (more: Readonly<Record<string, string>> = {}) => {
    const fields = {
      oauth_version: "1.0",
      oauth_signature_method: "PLAINTEXT",
      oauth_consumer_key: consumer,
      oauth_token: token,
      oauth_signature: `%26${secret}`,
      oauth_nonce: randomUUID(),
      oauth_timestamp: String(Math.floor(Date.now() / 1_000)),
      ...more,
    };
    const list = Object.entries(fields).map(([name, value]) => `${name}="${value}"`);
    return { authorization: `OAuth ${list.join(", ")}` };
  };
  const ask = async (method: string, path: string, form?: Readonly<Record<string, string>>) => {
    const body = form && new URLSearchParams(form).toString();
    const type = body && { "content-type": "application/x-www-form-urlencoded", "content-length": body.length };
    // One connection a call: after a restart at the same port a kept one would be stale.
    const options = { method, agent: false as const, headers: { ...signed(), ...type } };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    request(`${told.url}/api/2.0/${path}`, options, resolve).on("error", reject).end(body);
    const response = await promise;
    const text = await textOf(response);
    const isJson = response.headers["content-type"]?.startsWith("application/json");
    return { status: response.statusCode, text, body: (isJson ? JSON.parse(text) : undefined) as Shown };
  };
  const shows = (id: string, status: MaasStatus) =>
    expect
      .poll(async () => (await ask("GET", `machines/${id}/`)).body.status_name, { timeout: 20_000, interval: 20 })
      .toBe(nameOf(status));
  /** Time stands nearly still but here: what is asked of a machine meanwhile finds it as it was left. */
  const reached = async (id: string, status: MaasStatus) => {
    await simulator.control("PUT", "/speed", { speed: 20_000 });
    await shows(id, status);
    await simulator.control("PUT", "/speed", { speed: STILL });
  };
  return {
    ...simulator,
    told,
    ask,
    signed,
    shows,
    reached,
    [Symbol.asyncDispose]: () => simulator[Symbol.asyncDispose](),
  };
}

const firstOf = ({ hosts: [host] }: Told) => {
  if (host === undefined) throw new Error("no server");
  return host;
};
const ipmiOf = (host: Told["hosts"][number]) => ({
  hostname: host.id,
  power_type: "ipmi",
  power_parameters_power_address: host.ipmi_address,
  power_parameters_power_user: host.ipmi_username,
  power_parameters_power_pass: host.ipmi_password,
  commission: "false",
});

describe("a simulated MAAS", () => {
  test("has seen the management controllers of its servers, until one is a port of a machine", async () => {
    await using maas = await opened("racks=1,maas=2");
    const [first, second] = maas.told.hosts;
    const seen = async (op: string) =>
      ((await maas.ask("GET", `discovery/${op}`)).body as unknown as { mac_address: string; ip: string }[]).map(
        ({ mac_address, ip }) => `${mac_address} ${ip}`,
      );
    const both = [first, second].map((host) => `${host?.ipmi_mac} ${host?.ipmi_address}`);
    expect(await seen("?op=by_unknown_mac")).toEqual(both);
    const port = {
      hostname: "odd",
      architecture: "amd64/generic",
      mac_addresses: first?.ipmi_mac ?? "",
      commission: "false",
    };
    expect(await maas.ask("POST", "machines/", port)).toMatchObject({ status: 200 });
    expect(await seen("?op=by_unknown_mac")).toEqual(both.slice(1));
    expect(await seen("")).toEqual(both);
  });

  test("takes a server from New to Deployed and back, each with its own status", async () => {
    await using maas = await opened("racks=1,maas=2");
    const host = firstOf(maas.told);
    const made = await maas.ask("POST", "machines/", ipmiOf(host));
    expect(made.body, made.text).toMatchObject({ status: 0, hostname: "gpu-1", power_type: "ipmi", boot_disk: null });
    const one = `machines/${made.body.system_id}/`;
    expect(await maas.ask("POST", `${one}?op=commission`)).toMatchObject({ status: 200, body: { status: 1 } });
    await maas.reached(made.body.system_id, 4);

    const disks = (await maas.ask("GET", `nodes/${made.body.system_id}/blockdevices/`)).body as unknown as {
      id: number;
      model: string;
    }[];
    const boss = disks.find(({ model }) => model === "DELLBOSS VD");
    expect(await maas.ask("GET", one)).toMatchObject({ body: { boot_disk: { id: 1 } } });
    await maas.ask("POST", `nodes/${made.body.system_id}/blockdevices/${boss?.id}/?op=set_boot_disk`);
    expect(await maas.ask("POST", `${one}?op=set_storage_layout`, { storage_layout: "flat" })).toMatchObject({
      status: 200,
      body: { boot_disk: { model: "DELLBOSS VD" } },
    });

    const userData = Buffer.from("#cloud-config\n").toString("base64");
    const deployed = await maas.ask("POST", `${one}?op=deploy`, { user_data: userData, enable_hw_sync: "true" });
    expect(deployed.body, deployed.text).toMatchObject({ status: 9, owner: "admin", osystem: "ubuntu" });
    expect((await maas.ask("POST", `${one}?op=commission`)).text).toBe(
      "Invalid transition: Deploying -> Commissioning.",
    );
    await maas.reached(made.body.system_id, 6);
    const { body } = await maas.ask("GET", one);
    expect(body).toMatchObject({ power_state: "on", enable_hw_sync: true, sync_interval: 900 });
    expect(Date.parse(`${body.last_sync as string}Z`)).toBeLessThanOrEqual(Date.now());
    expect(body.ip_addresses).toHaveLength(1);

    expect(await maas.ask("POST", `${one}?op=release`, { erase: "true" })).toMatchObject({ body: { status: 14 } });
    await maas.reached(made.body.system_id, 4);
    expect(await maas.ask("GET", one)).toMatchObject({ body: { owner: null, power_state: "off", ip_addresses: [] } });
    expect(await maas.ask("DELETE", one)).toMatchObject({ status: 204, text: "" });
    expect(await maas.ask("GET", one)).toMatchObject({ status: 404, text: "No Machine matches the given query." });

    const calls = (await maas.control<{ method: string; op: string | null }[]>("GET", "/maas/calls")).body;
    expect(calls.filter(({ op }) => op === "deploy")).toHaveLength(1);
  });

  test("remembers its machines, and what was due, over a restart", async () => {
    using directory = temporaryDataDir();
    const there = { dataDir: directory.path };
    const before = await opened("racks=1,maas=1", there);
    const { body } = await before.ask("POST", "machines/", { ...ipmiOf(firstOf(before.told)), commission: "true" });
    expect(body.status).toBe(1);
    await before[Symbol.asyncDispose]();
    await using maas = await opened("racks=1,maas=1", { ...there, told: before.told, speed: 20_000 });
    await maas.shows(body.system_id, 4);
  });

  test("lets nobody in who does not sign, signs wrongly, signs late, or sends the same again", async () => {
    await using maas = await opened("racks=1,maas=1");
    const whoami = (headers: Readonly<Record<string, string>>) =>
      fetch(`${maas.told.url}/api/2.0/users/?op=whoami`, { headers }).then(({ status }) => status);
    expect(await whoami({})).toBe(401);
    expect(await whoami(maas.signed({ oauth_signature: "%26guess" }))).toBe(401);
    expect(await whoami(maas.signed({ oauth_consumer_key: "guess" }))).toBe(401);
    expect(await whoami(maas.signed({ oauth_timestamp: "1000000000" }))).toBe(401);
    expect(await whoami(maas.signed({ oauth_timestamp: "soon" }))).toBe(400);
    const once = maas.signed();
    expect([await whoami(once), await whoami(once)]).toEqual([200, 401]);
    expect((await fetch(`${maas.told.url}/api/2.0/version/`)).status).toBe(200);
  });

  test("says in its own way what is wrong with a call", async () => {
    await using maas = await opened("racks=1,maas=1");
    const host = firstOf(maas.told);
    const { body } = await maas.ask("POST", "machines/", ipmiOf(host));
    const one = `machines/${body.system_id}/`;
    const twin = await maas.ask("POST", "machines/", ipmiOf(host));
    expect(twin).toMatchObject({ status: 400, body: { hostname: ["Node with this Hostname already exists."] } });
    expect(await maas.ask("POST", `${one}?op=fly`)).toMatchObject({
      status: 400,
      text: "Unrecognised signature: method=POST op=fly",
    });
    expect((await maas.ask("POST", `${one}?op=deploy`)).status).toBe(409);
    expect((await maas.ask("POST", `${one}?op=power_on`)).status).toBe(409);
    expect((await maas.ask("POST", `${one}?op=set_storage_layout`, { storage_layout: "flat" })).status).toBe(409);
  });

  test("fails as servers do: a wrong password, a datasource that is not found, no BOSS card", async () => {
    await using maas = await opened("racks=1,maas=2");
    const [host, second] = maas.told.hosts;
    if (host === undefined || second === undefined) throw new Error("two servers");
    const wrong = { ...ipmiOf(host), power_parameters_power_pass: "no", commission: "true" };
    const { body: locked } = await maas.ask("POST", "machines/", wrong);
    await maas.reached(locked.system_id, 2);

    for (const type of ["no_boss_disk", "deploy_datasource_fails"])
      await maas.control("POST", "/faults", { device: second.id, fault: { type }, times: 1 });
    const { body } = await maas.ask("POST", "machines/", { ...ipmiOf(second), commission: "true" });
    await maas.reached(body.system_id, 4);
    const disks = await maas.ask("GET", `nodes/${body.system_id}/blockdevices/`);
    expect(disks.text).not.toContain("DELLBOSS");
    const unlinked = await maas.ask("POST", `machines/${body.system_id}/?op=deploy`);
    expect(unlinked).toMatchObject({ status: 400, body: { network: ["Node must be configured to use a network"] } });
    const boot = `nodes/${body.system_id}/interfaces/1/`;
    expect((await maas.ask("POST", `${boot}?op=link_subnet`, { mode: "AUTO", subnet: "1" })).status).toBe(200);
    await maas.ask("POST", `machines/${body.system_id}/?op=deploy`);
    await maas.reached(body.system_id, 11);
    const said = await maas.ask("GET", `events/?op=query&id=${body.system_id}&level=ERROR`);
    expect(said.text).toContain("no datasource found");
    expect((await maas.ask("POST", `machines/${body.system_id}/?op=deploy`)).status).toBe(409);
    expect((await maas.ask("POST", `machines/${body.system_id}/?op=release`)).status).toBe(200);
  });
});

describe("the statuses", () => {
  test("lead from every one that goes on by itself to its failure", () => {
    const failures = [
      [1, 2],
      [9, 11],
      [12, 13],
      [14, 15],
      [17, 18],
      [19, 20],
      [21, 22],
    ] as const;
    for (const [from, to] of failures) expect(mayFollow(from, to), `${from} to ${to}`).toBe(true);
    expect(mayFollow(11, 9)).toBe(false);
  });

  test("name only statuses that there are", () => {
    for (const { next } of Object.values(STATUSES))
      for (const id of next) expect(Object.keys(STATUSES)).toContain(String(id));
  });
});

test("a form reads the same however it is written", () => {
  const text = fc.string({ maxLength: 40 }).filter((value) => !value.includes("--edge"));
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.stringMatching(/^[a-z_]{1,8}$/), text), { maxLength: 6 }), (pairs) => {
      const parts = pairs.map(([name, value]) => {
        const encoded = Buffer.from(value).toString("base64");
        return `--edge\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Transfer-Encoding: base64\r\n\r\n${encoded}\r\n`;
      });
      const multipart = parseForm("multipart/form-data; boundary=edge", `${parts.join("")}--edge--\r\n`);
      const encoded = parseForm("application/x-www-form-urlencoded", new URLSearchParams([...pairs]).toString());
      for (const [name] of pairs) expect(multipart.all(name)).toEqual(encoded.all(name));
    }),
  );
});
