import { afterEach, describe, expect, test } from "vitest";
import { createMaas } from "../../../src/providers/maas/maas-provider.ts";
import { parseApiKey } from "../../../src/providers/maas/sign-in.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import type { MaasGate } from "../../../src/services/fleet/site-target.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, startInstalls } from "../installs/installs-under-test.ts";
import { startMaasSite } from "./maas-site.ts";

let site: Awaited<ReturnType<typeof startMaasSite>>;
let api: InstallsUnderTest;
let maas = createMaas({ gateway: createBmcGateway() });
/** Calls whatever `maas` is by then. */
const gate = new Proxy({} as MaasGate, {
  get: (_, name: keyof MaasGate) => (name === "checkKey" ? parseApiKey : maas[name]),
});

beforeAll(async () => {
  site = await startMaasSite({ hosts: 3 });
  api = await startInstalls({ maas: gate });
});
afterAll(async () => {
  await api.close();
  maas.close();
  await site.stop();
});
afterEach(async () => {
  await site.control("DELETE", "/faults");
  // What one test had refused is not held against the next.
  maas.close();
  maas = createMaas({ gateway: createBmcGateway() });
});

interface Site {
  readonly name: string;
  readonly url: string;
  readonly enabled: boolean;
}
interface Preflight {
  readonly ready: boolean;
  readonly results: readonly {
    readonly check: string;
    readonly result: string;
    readonly message: string;
    readonly next: string;
  }[];
}

let count = 0;
const aName = () => `site-${++count}`;
const given = (more: object = {}) => ({
  name: aName(),
  url: site.url,
  api_key: site.apiKey,
  allow_http: true,
  ...more,
});
const add = (more: object = {}) => api.ask<Site>("POST", "/api/v1/fleet/sites", given(more));
const preflight = (name: string) => api.ask<Preflight>("GET", `/api/v1/fleet/sites/${name}/preflight`);
const resultOf = ({ results }: Preflight, check: string) => results.find((each) => each.check === check);

describe("a fleet site", () => {
  test("is recorded once its MAAS was called, and shows no key anywhere", async () => {
    const made = await add({ description: "the lab" });
    expect(made).toMatchObject({ url: site.url, description: "the lab", enabled: true, retain_in_maas: false });
    const answers = await Promise.all([
      api.call("GET", `/api/v1/fleet/sites/${made.name}`),
      api.call("GET", "/api/v1/fleet/sites"),
    ]);
    const journal = await api.db.query("select data::text from journal where kind = 'fleet_site'");
    const secrets = await api.db.query(`select name, encode(ciphertext, 'escape') as text from secrets`);
    const secret = site.apiKey.split(":")[2] ?? "";
    expect(JSON.stringify([answers.map(({ text }) => text), journal, secrets])).not.toContain(secret);
    expect(secrets).toContainEqual(expect.objectContaining({ name: `fleet-site/${made.name}` }));
  });

  test.each([
    ["http unasked", { allow_http: false }, 422, "the API key would travel unencrypted"],
    ["a key that is none", { api_key: "one:two" }, 422, "three parts"],
    ["a key that MAAS does not know", { api_key: "one:two:three" }, 400, "does not accept the API key"],
    ["an address with a password", { url: "http://a:b@127.0.0.1/MAAS" }, 422, "must be the http or https address"],
    ["an address where nobody answers", { url: "http://127.0.0.1:1/MAAS" }, 400, "--skip-probe"],
    ["a name that is none", { name: "Lab 1" }, 422, "letters a-z"],
  ])("is refused with %s, and nothing is kept", async (_what, more, status, words) => {
    const body = given(more);
    const answer = await api.call("POST", "/api/v1/fleet/sites", body);
    expect(answer.status, answer.text).toBe(status);
    expect(answer.text).toContain(words);
    expect(await api.db.query("select 1 from fleet_sites where name = $1", [body.name])).toEqual([]);
    expect(await api.db.query("select 1 from secrets where name = $1", [`fleet-site/${body.name}`])).toEqual([]);
  });

  test("that is there already is not made again, nor is its key replaced", async () => {
    const { name } = await add();
    const again = await api.call("POST", "/api/v1/fleet/sites", given({ name, api_key: "a:b:c", skip_probe: true }));
    expect(again.status).toBe(409);
    expect((await preflight(name)).ready).toBe(true);
  });

  test("takes another address only with the key, so that nobody has ours sent to a place of their own", async () => {
    const { name } = await add();
    const elsewhere = { url: "https://127.0.0.1:9/MAAS", skip_probe: true };
    const refused = await api.call("PATCH", `/api/v1/fleet/sites/${name}`, elsewhere);
    expect(refused.status).toBe(422);
    expect(refused.text).toContain("api_key: is required with another url");
    expect(await api.ask<Site>("GET", `/api/v1/fleet/sites/${name}`)).toMatchObject({ url: site.url });
    const moved = await api.ask<Site>("PATCH", `/api/v1/fleet/sites/${name}`, { ...elsewhere, api_key: "a:b:c" });
    expect(moved.url).toBe(elsewhere.url);
  });

  test("sends a key to the address that it was given for alone, also where both are read while they change", async () => {
    const { name } = await add();
    // As a reader sees it that read the site before it moved, and the key after.
    await api.db.query("update fleet_sites set url = 'http://127.0.0.1:1/MAAS' where name = $1", [name]);
    const answer = await api.call("GET", `/api/v1/fleet/sites/${name}/candidates`);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("no API key for http://127.0.0.1:1/MAAS");
  });

  test("changes what is given, and leaves the rest", async () => {
    const { name } = await add({ description: "first" });
    const changed = await api.ask<Site>("PATCH", `/api/v1/fleet/sites/${name}`, { enabled: false });
    expect(changed).toMatchObject({ enabled: false, description: "first", url: site.url });
    const events = await api.db.query(
      "select type from journal where kind = 'fleet_site' and id = $1 order by version",
      [name],
    );
    expect(events).toEqual([{ type: "created" }, { type: "changed" }]);
  });

  test("that a profile belongs to stays; then it goes with its key", async () => {
    const { name } = await add();
    await api.ask("PUT", `/api/v1/fleet/sites/${name}/profiles/h100`, {});
    const kept = await api.call("DELETE", `/api/v1/fleet/sites/${name}`);
    expect(kept.status).toBe(400);
    expect(kept.text).toContain("profile h100 belongs to it");
    await api.ask("DELETE", `/api/v1/fleet/sites/${name}/profiles/h100`);
    await api.ask("DELETE", `/api/v1/fleet/sites/${name}`);
    expect(await api.db.query("select 1 from secrets where name = $1", [`fleet-site/${name}`])).toEqual([]);
    expect((await api.call("GET", `/api/v1/fleet/sites/${name}`)).status).toBe(404);
  });
});

describe("a profile", () => {
  test("is whole with its defaults, and keeps what was given", async () => {
    const { name } = await add();
    const path = `/api/v1/fleet/sites/${name}/profiles/h100`;
    const set = await api.ask<{ policy: object }>("PUT", path, { policy: { max_deploy_retry_attempts: 0 } });
    expect(set.policy).toEqual({
      site_bootstrap_bundle_ref: null,
      strict_pxe_preflight: true,
      enable_phase2_roce: false,
      require_hw_sync: true,
      hardware_sync_interval: "15m",
      release_fallback_no_erase: false,
      enable_deploy_retry_on_datasource_failure: true,
      max_deploy_retry_attempts: 0,
      auto_claim_single_new_machine: false,
      batch_max_parallel: 5,
      enrollment_token_ttl_seconds: 3_600,
      ssh_username: null,
      distro_series: null,
    });
    expect(await api.db.query("select policy from fleet_profiles where site = $1", [name])).toEqual([
      { policy: { max_deploy_retry_attempts: 0 } },
    ]);
    const replaced = await api.ask<{ policy: object }>("PUT", path, { policy: { enable_phase2_roce: true } });
    expect(replaced.policy).toMatchObject({ enable_phase2_roce: true, max_deploy_retry_attempts: 2 });
  });

  test.each([
    ["a field that is none", { pxe_mac: "x" }, "policy.pxe_mac: is no field"],
    ["a value that is none", { max_deploy_retry_attempts: 99 }, "policy.max_deploy_retry_attempts"],
    ["an interval that is none", { hardware_sync_interval: "soon" }, "such as 15m"],
  ])("is refused with %s", async (_what, policy, words) => {
    const { name } = await add();
    const answer = await api.call("PUT", `/api/v1/fleet/sites/${name}/profiles/a`, { policy });
    expect(answer.status).toBe(422);
    expect(answer.text).toContain(words);
  });

  test("of a site that is not there is refused", async () => {
    expect((await api.call("PUT", "/api/v1/fleet/sites/nowhere/profiles/a", {})).status).toBe(404);
  });
});

describe("preflight", () => {
  test("passes at a MAAS that has all it needs", async () => {
    const { name } = await add();
    const found = await preflight(name);
    expect(found.results.map(({ check, result }) => [check, result])).toEqual([
      ["maas_answers", "passed"],
      ["api_key_accepted", "passed"],
      ["api_key_is_admin", "passed"],
      ["images_synced", "passed"],
      ["rack_controllers_known", "passed"],
      ["subnet_with_dhcp", "passed"],
      ["hardware_sync_interval", "passed"],
    ]);
    expect(found.ready).toBe(true);
  });

  test("names an image that a profile wants and MAAS does not have", async () => {
    const { name } = await add();
    await api.ask("PUT", `/api/v1/fleet/sites/${name}/profiles/old`, { policy: { distro_series: "focal" } });
    const found = await preflight(name);
    expect(found.ready).toBe(false);
    expect(resultOf(found, "images_synced")).toMatchObject({
      result: "failed",
      message: expect.stringContaining("focal"),
    });
  });

  test.each([
    ["users/", [], "api_key_accepted", "failed"],
    ["rackcontrollers/", [], "rack_controllers_known", "failed"],
    ["subnets/", [], "subnet_with_dhcp", "failed"],
    ["boot-resources/", [], "images_synced", "failed"],
  ])("tells that %s is not as it should be", async (path, body, check, result) => {
    const { name } = await add();
    const status = path === "users/" ? 401 : 200;
    const fault = { type: "status", status, body };
    await site.control("POST", "/faults", { device: "maas", path: `/MAAS/api/2.0/${path}`, fault });
    const found = await preflight(name);
    expect(resultOf(found, check)).toMatchObject({ result, next: expect.stringMatching(/\S/) });
    if (status === 401) {
      expect(resultOf(found, check)?.next).toBe(`millwright fleet site update ${name} --api-key-file <file>`);
      expect(resultOf(found, "images_synced")).toMatchObject({ result: "skipped" });
    }
  });

  test("of a MAAS that is away says so, and skips what it cannot find out", async () => {
    const { name } = await add({ url: "http://127.0.0.1:1/MAAS", skip_probe: true });
    const found = await preflight(name);
    expect(resultOf(found, "maas_answers")).toMatchObject({
      result: "failed",
      message: expect.stringContaining("127.0.0.1:1"),
    });
    expect(found.results.slice(1).every(({ result }) => result === "skipped")).toBe(true);
  });
});

interface Candidate {
  readonly source: string;
  readonly system_id: string;
  readonly hostname: string;
  readonly macs: readonly string[];
  readonly ip: string | null;
  readonly obstacle: string;
}
const candidates = (name: string, all = false) =>
  api.ask<readonly Candidate[]>("GET", `/api/v1/fleet/sites/${name}/candidates${all ? "?all=true" : ""}`);
/** A live node of the site, beside everything else. */
const putNode = (
  id: string,
  { site: of, ipmiIp, systemId }: { site: string; ipmiIp: string | null; systemId: string | null },
) =>
  api.db.query(
    `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state, ipmi_ip, facts)
     values ($1, $2, 'h100', 'gpu8', $1, 'maas', $1, $1, '', 'test', 'enrolling', $3, jsonb_build_object('systemId', $4::text))`,
    [id, of, ipmiIp, systemId],
  );

test("candidates are also the management controllers that MAAS has seen; what is a node already is listed with its node", async () => {
  const { name } = await add();
  const [first, second, third] = site.hosts;
  const { system_id: machine } = await site.control<{ system_id: string }>(
    "POST",
    `/maas/hosts/${third?.id}/discover`,
    {},
  );
  const seen = (await candidates(name)).filter(({ source }) => source === "network");
  expect(seen.map(({ ip }) => ip)).toEqual([first, second, third].map((host) => host?.ipmi_address));
  expect(seen[0]).toEqual({
    ...{ source: "network", system_id: "", hostname: "", state: "", status_name: "", power: "unknown", serial: null },
    ...{ macs: [first?.ipmi_mac], ip: first?.ipmi_address, vendor: "Dell Inc.", obstacle: "" },
  });
  await putNode("fn-held", { site: name, ipmiIp: first?.ipmi_address ?? "", systemId: machine });
  const elsewhere = (await add()).name;
  await putNode("fn-elsewhere", { site: elsewhere, ipmiIp: second?.ipmi_address ?? "", systemId: null });
  expect((await candidates(name)).map(({ ip, system_id }) => ip ?? system_id)).toEqual([third?.ipmi_address]);
  expect((await candidates(name, true)).map(({ obstacle }) => obstacle)).toEqual([
    "it is node fn-held",
    "it is the management controller of node fn-held",
    "it is the management controller of node fn-elsewhere",
    "",
  ]);
  await api.db.query("delete from fleet_nodes where id in ('fn-held', 'fn-elsewhere')");
  await site.control("DELETE", `/maas/machines/${machine}`);
});

test("candidates are the machines that MAAS has and nobody uses; the others are listed with why", async () => {
  const { name } = await add();
  const [first, second] = site.hosts;
  await site.control("POST", `/maas/hosts/${first?.id}/discover`, {});
  const { system_id: used } = await site.control<{ system_id: string }>(
    "POST",
    `/maas/hosts/${second?.id}/discover`,
    {},
  );
  const open = await api.ask<{ mac: string; macs: string[] }[]>("GET", `/api/v1/fleet/sites/${name}/candidates`);
  expect(open.map(({ macs }) => macs[0])).toContain(first?.mac);
  await site.control("POST", "/faults", {
    device: "maas",
    path: "/MAAS/api/2.0/machines/",
    fault: {
      type: "status",
      status: 200,
      body: [{ system_id: used, hostname: "gpu", status: 6, status_name: "Deployed", owner: "kim" }],
    },
  });
  const ofMaas = async (all: boolean) => (await candidates(name, all)).filter(({ source }) => source === "maas");
  expect(await ofMaas(false)).toEqual([]);
  expect(await ofMaas(true)).toEqual([
    expect.objectContaining({
      hostname: "gpu",
      state: "Deployed",
      obstacle: "kim uses it in MAAS; release it there first",
    }),
  ]);
});
