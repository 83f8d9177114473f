import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { explainInstall } from "../../../src/services/explain/install.ts";
import { listMachineAlerts } from "../../../src/store/machine/alerts.ts";
import { eventually } from "../../support/eventually.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, type Node, type Page, startInstalls } from "./installs-under-test.ts";

/** The attacks of docs/security/threat-model.md on boots and reports, over HTTP, each from an address of its own. */
const MACHINE = "127.0.0.1";
const IN_ITS_SUBNET = "127.0.0.2";
const ELSEWHERE = "127.0.9.9";

const PLAIN = { method: "kernel", kernel_url: "/files/vmlinuz", cmdline: "user=secret-of-the-site" };

let api: InstallsUnderTest;
beforeAll(async () => {
  api = await startInstalls({ requireTokens: true, engine: true });
  await api.ask("POST", "/api/v1/workflows", { id: "plain", name: "Plain", boot: PLAIN });
  api.boot.eraser = { method: "kernel", kernel_url: "/files/vmlinuz", cmdline: "" };
});
afterAll(() => api.close());

interface Heard {
  readonly status: number | undefined;
  readonly text: string;
}

function call(from: string, method: string, path: string, body?: object, headers: object = {}): Promise<Heard> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const sent = request(
      `${api.url}${path}`,
      { method, localAddress: from, headers: { ...type, ...headers } },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        answer.on("end", () => resolve({ status: answer.statusCode, text }));
      },
    );
    sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** What firmware gets there, with the token in it. */
async function fetchScript(from: string, mac: string, more = ""): Promise<{ text: string; token: string }> {
  const { status, text } = await call(from, "GET", `/api/v1/boot?mac=${mac}${more}`);
  expect(status, text).toBe(200);
  return { text, token: /millwright\.token=(\S+)/.exec(text)?.[1] ?? "" };
}
const send = (from: string, mac: string, token: string, more: object) =>
  call(from, "POST", "/api/v1/report", { mac_address: mac, report_token: token, ...more });

const nodeOf = (id: string) => api.ask<Node>("GET", `/api/v1/nodes/${id}`);
const eventsOf = async (id: string, type: string) =>
  (
    await api.call<Page<{ message: string; event_metadata: object }>>(
      "GET",
      `/api/v1/nodes/${id}/events?event_type=${type}`,
    )
  ).body.data;
const hoursPass = (id: string, hours: number) =>
  api.db.execute(
    `update installs set armed_at = armed_at - $2 * interval '1 h',
        boot = boot || jsonb_build_object('at', (boot ->> 'at')::timestamptz - $2 * interval '1 h') where id = $1`,
    [id, hours],
  );

describe("an erasure", () => {
  async function toErase(): Promise<{ id: string; mac: string }> {
    const { id, mac_address: mac } = await api.register();
    await api.place(id, "active");
    await api.move(id, "deprovisioning");
    return { id, mac };
  }
  const disk = { event: "disk_erased", erased_disk: { disk: "/dev/sda", method: "overwrite", verified: true } };
  const erased = { event: "erased", erased_disks: ["/dev/sda"] };
  async function eraseAs(from: string, mac: string, token: string): Promise<(number | undefined)[]> {
    return [(await send(from, mac, token, disk)).status, (await send(from, mac, token, erased)).status];
  }

  test("counts when the boot reports it that was armed for it, also where its installer has another address of the subnet", async () => {
    const { id, mac } = await toErase();
    const { token } = await fetchScript(MACHINE, mac);
    expect((await fetchScript(MACHINE, mac)).token).toBe(token);
    expect(await eraseAs(IN_ITS_SUBNET, mac, token)).toEqual([200, 200]);
    expect((await nodeOf(id)).state).toBe("retired");
  });

  test.each([IN_ITS_SUBNET, ELSEWHERE])(
    "cannot be forged by a stranger at %s who asks for the script too",
    async (at) => {
      const { id, mac } = await toErase();
      const machine = await fetchScript(MACHINE, mac);
      const stranger = await fetchScript(at, mac);
      expect(stranger.text).toContain("millwright.task=erase");
      expect(stranger.token).not.toBe(machine.token);
      expect(await eraseAs(at, mac, stranger.token)).toEqual([200, 200]);
      expect(await eraseAs(MACHINE, mac, machine.token)).toEqual([200, 200]);
      const contested = `its boot is contested: ${MACHINE} and ${at} asked for its script`;
      expect(await nodeOf(id)).toMatchObject({
        state: "deprovisioning",
        erased_disks: [],
        last_install_error: `erased was reported, but ${contested}`,
      });
      expect(await eventsOf(id, "boot_contested")).toMatchObject([{ event_metadata: { addresses: [MACHINE, at] } }]);
      expect((await listMachineAlerts(api.db, [id]))(id)).toEqual([expect.stringContaining(`${MACHINE} and ${at}`)]);
      expect(api.log.lines).toContainEqual(
        expect.objectContaining({ level: "warn", fields: { kind: "install", id, addresses: [MACHINE, at] } }),
      );
    },
  );

  test("cannot be forged by a stranger who came first: the machine makes the boot contested, and is erased all the same", async () => {
    const { id, mac } = await toErase();
    const stranger = await fetchScript(ELSEWHERE, mac);
    const machine = await fetchScript(MACHINE, mac);
    expect(machine.text).toContain("millwright.task=erase");
    await eraseAs(ELSEWHERE, mac, stranger.token);
    expect(await nodeOf(id)).toMatchObject({ state: "deprovisioning", erased_disks: [] });
    // Asking over and over again writes nothing more.
    for (let times = 0; times < 5; times += 1) await fetchScript(MACHINE, mac);
    expect(await eventsOf(id, "boot_contested")).toHaveLength(1);
  });

  test("cannot be undone by a stranger who asks for the script in the middle of it", async () => {
    const { id, mac } = await toErase();
    const { token } = await fetchScript(MACHINE, mac);
    await send(MACHINE, mac, token, disk);
    await fetchScript(ELSEWHERE, mac);
    expect((await nodeOf(id)).erased_disks).toHaveLength(1);
  });

  test("is not believed with a stolen token, where it was not given", async () => {
    const { id, mac } = await toErase();
    const { token } = await fetchScript(MACHINE, mac);
    expect(await eraseAs(ELSEWHERE, mac, token)).toEqual([401, 401]);
    expect(await nodeOf(id)).toMatchObject({ state: "deprovisioning", erased_disks: [], last_install_error: null });
  });

  test("is not believed of a boot that nobody expected any more", async () => {
    const { id, mac } = await toErase();
    await hoursPass(id, 25);
    const { token } = await fetchScript(MACHINE, mac);
    expect(await eraseAs(MACHINE, mac, token)).toEqual([200, 200]);
    expect(await nodeOf(id)).toMatchObject({
      state: "deprovisioning",
      last_install_error: "erased was reported, but nothing had armed its boot",
    });
  });

  test("is not believed of a boot that an earlier version gave its script", async () => {
    const { id, mac } = await toErase();
    await api.db.execute("update installs set report_token_hash = encode(sha256('of-old'), 'hex') where id = $1", [id]);
    expect(await eraseAs(MACHINE, mac, "of-old")).toEqual([200, 200]);
    expect(await nodeOf(id)).toMatchObject({
      state: "deprovisioning",
      last_install_error: expect.stringContaining("earlier version"),
    });
  });

  test("that no boot proves is an operator's to confirm, under the operator's name", async () => {
    const { id, mac } = await toErase();
    await fetchScript(MACHINE, mac);
    const confirm = (as: string | null, role: string) =>
      api.call<{ message: string; detail: string }>(
        "POST",
        `/api/v1/nodes/${id}/confirm-erased`,
        { comment: "shredded" },
        { as, role },
      );
    expect((await confirm(null, "")).status).toBe(401);
    expect((await confirm("vera", "viewer")).status).toBe(403);
    expect(await nodeOf(id)).toMatchObject({ state: "deprovisioning" });
    expect((await confirm("olga", "operator")).body.message).toBe("Node retired: confirmed as erased");
    expect((await api.history(id)).data[0]).toMatchObject({
      from_state: "deprovisioning",
      to_state: "retired",
      triggered_by: "admin",
      user_id: "olga",
      comment: "shredded",
    });
    expect(await confirm("olga", "operator")).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("is retired") },
    });
  });
});

describe("what is on record of a machine", () => {
  const known = { hostname: "gpu-1", vendor: "Acme", serial_number: "S-1", ip_address: "10.0.0.7" };

  test("is not replaced by who asks for its script, or reports, without having proved anything", async () => {
    const { id, mac_address: mac } = await api.register({ hostname: "gpu-1", vendor: "Acme", serial_number: "S-1" });
    await api.db.execute('update installs set facts = facts || \'{"ipAddress":"10.0.0.7"}\' where id = $1', [id]);
    await api.place(id, "active");
    const before = await nodeOf(id);
    await fetchScript(ELSEWHERE, mac, "&vendor=Evil&serial=S-9&arch=arm64&platform=efi");
    const forged = { hostname: "evil", vendor: "Evil", serial_number: "S-9", ip_address: ELSEWHERE };
    expect((await send(ELSEWHERE, mac, "", forged)).status).toBe(401);
    expect(await nodeOf(id)).toMatchObject({ ...known, arch: before.arch, boot_mode: before.boot_mode });
  });

  test("is not replaced by a boot in doubt, and is by the one that was expected", async () => {
    const { id, mac_address: mac } = await api.register({ hostname: "gpu-1", vendor: "Acme" });
    await api.move(id, "pending", { workflow_id: "plain" });
    const machine = await fetchScript(MACHINE, mac);
    await send(MACHINE, mac, machine.token, { hostname: "gpu-2" });
    expect(await nodeOf(id)).toMatchObject({ hostname: "gpu-2", ip_address: MACHINE });
    const stranger = await fetchScript(ELSEWHERE, mac, "&platform=efi");
    await send(ELSEWHERE, mac, stranger.token, { hostname: "evil", ip_address: ELSEWHERE, model: "M" });
    expect(await nodeOf(id)).toMatchObject({ hostname: "gpu-2", ip_address: MACHINE, model: "M", boot_mode: "bios" });
  });

  test("is no business of who reports: the answer holds the state and nothing else", async () => {
    const { id, mac_address: mac } = await api.register();
    await api.move(id, "pending", { workflow_id: "plain" });
    const { token } = await fetchScript(MACHINE, mac);
    const { text } = await send(MACHINE, mac, token, { installation_status: "started" });
    expect(JSON.parse(text)).toEqual({ success: true, data: { state: "installing" }, message: "Installation started" });
  });
});

describe("an operator's bearer", () => {
  const as = (name: string, role: string) => ({ authorization: "Bearer of-a-person", "x-user": name, "x-role": role });
  const reportAs = (mac: string, more: object, headers: object) =>
    call(ELSEWHERE, "POST", "/api/v1/report", { mac_address: mac, ...more }, headers);

  test("reports for a node under the operator's name, also where its boot is contested", async () => {
    const { id, mac_address: mac } = await api.register();
    await api.move(id, "pending", { workflow_id: "plain" });
    for (const from of [MACHINE, ELSEWHERE]) await fetchScript(from, mac);
    for (const installation_status of ["started", "complete"])
      expect((await reportAs(mac, { installation_status, hostname: "gpu-7" }, as("olga", "operator"))).status).toBe(
        200,
      );
    expect(await nodeOf(id)).toMatchObject({ state: "installed", hostname: "gpu-7" });
    const entry = await api.db.query("select actor from journal where id = $1 and to_state = 'installed'", [id]);
    expect(entry).toEqual([{ actor: expect.stringContaining("olga") }]);
  });

  test("must be good, and of a role that may lead nodes", async () => {
    const { id, mac_address: mac } = await api.register();
    await api.move(id, "pending", { workflow_id: "plain" });
    const started = { installation_status: "started" };
    expect((await reportAs(mac, started, as("vera", "viewer"))).status).toBe(403);
    expect((await reportAs(mac, started, { authorization: "Bearer unknown" })).status).toBe(401);
    expect((await nodeOf(id)).state).toBe("pending");
  });

  test("vouches for nothing where it is limited to some racks: the report says which node it is about", async () => {
    const { id, mac_address: mac } = await api.register();
    await api.move(id, "pending", { workflow_id: "plain" });
    const limited = { ...as("olga", "operator"), "x-racks": "rack-of-others" };
    const refused = await reportAs(mac, { installation_status: "started" }, limited);
    expect(refused.status).toBe(403);
    const byId = `/api/v1/nodes/${id}/installation-status`;
    expect((await call(ELSEWHERE, "POST", byId, { installation_status: "started" }, limited)).status).toBe(403);
    expect((await nodeOf(id)).state).toBe("pending");
  });

  test("proves no erasure: that an operator confirms by name", async () => {
    const { id, mac_address: mac } = await api.register();
    await api.place(id, "active");
    await api.move(id, "deprovisioning");
    const erased = { event: "erased", erased_disks: ["/dev/sda"] };
    const refused = await reportAs(mac, erased, as("olga", "operator"));
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("an operator confirms an erasure")]);
    expect((await nodeOf(id)).state).toBe("deprovisioning");
  });
});

describe("an install", () => {
  async function toInstall(): Promise<{ id: string; mac: string }> {
    const { id, mac_address: mac } = await api.register();
    await api.move(id, "pending", { workflow_id: "plain" });
    return { id, mac };
  }
  const status = (from: string, mac: string, token: string, installation_status: string) =>
    send(from, mac, token, { installation_status });
  const stateIn = ({ text }: Heard) => (JSON.parse(text) as { data: { state: string } }).data.state;
  const isInstallScript = ({ text }: { text: string }) => text.includes("installing ");

  test("cannot be taken from the machine by a stranger who asks first and reports: the machine is served, and installs", async () => {
    const { id, mac } = await toInstall();
    const stranger = await fetchScript(ELSEWHERE, mac);
    await status(ELSEWHERE, mac, stranger.token, "started");
    expect((await nodeOf(id)).state).toBe("installing");
    const machine = await fetchScript(MACHINE, mac);
    expect(isInstallScript(machine)).toBe(true);
    const begun = await status(MACHINE, mac, machine.token, "started");
    expect(stateIn(begun)).toBe("installing");
    // What the stranger says now ends nothing.
    for (const said of ["failed", "failed", "failed", "complete"]) await status(ELSEWHERE, mac, stranger.token, said);
    expect(await nodeOf(id)).toMatchObject({ state: "installing", install_attempts: 0 });
    expect(await eventsOf(id, "boot_contested")).toMatchObject([
      { event_metadata: { addresses: [ELSEWHERE, MACHINE] } },
    ]);
    expect((await listMachineAlerts(api.db, [id]))(id)).toEqual([
      expect.stringContaining(`${ELSEWHERE} and ${MACHINE}`),
    ]);
    // Each installs once: the system of the machine is not overwritten when it boots.
    await status(MACHINE, mac, machine.token, "complete");
    for (const from of [MACHINE, ELSEWHERE]) expect(isInstallScript(await fetchScript(from, mac))).toBe(false);
  });

  test("that is pending is neither begun nor ended by two who claim its boot", async () => {
    const { id, mac } = await toInstall();
    const machine = await fetchScript(MACHINE, mac);
    const stranger = await fetchScript(IN_ITS_SUBNET, mac);
    expect(stranger.token).not.toBe(machine.token);
    for (const [from, { token }] of [
      [IN_ITS_SUBNET, stranger],
      [MACHINE, machine],
    ] as const)
      for (const said of ["started", "failed", "failed", "failed", "complete"]) {
        const heard = await status(from, mac, token, said);
        expect([heard.status, stateIn(heard)]).toEqual([200, "installing"]);
      }
    expect(await nodeOf(id)).toMatchObject({
      state: "pending",
      last_install_error: `complete was reported, but its boot is contested: ${MACHINE} and ${IN_ITS_SUBNET} asked for its script`,
    });
    // Each of what each of them said is an event once, however often they say it.
    await status(MACHINE, mac, machine.token, "failed");
    expect(await eventsOf(id, "report_ignored")).toHaveLength(6);
  });

  test("that two claim to have completed is not begun again by the clock, and an operator settles it", async () => {
    const { id, mac } = await toInstall();
    const machine = await fetchScript(MACHINE, mac);
    await status(MACHINE, mac, machine.token, "started");
    await fetchScript(ELSEWHERE, mac);
    await api.db.execute(
      "update installs set facts = facts || jsonb_build_object('attemptStartedAt', now() - interval '2 h') where id = $1",
      [id],
    );
    await status(MACHINE, mac, machine.token, "complete");
    const { waitingFor } = await eventually(
      async () => {
        const told = await explainInstall(api.deps, id);
        return told.waitingFor.some((each) => each.includes("waiting for a person")) && told;
      },
      { what: "the engine waits for a person" },
    );
    expect(waitingFor).toContainEqual(expect.stringContaining("complete was reported, but its boot is contested"));
    expect(await nodeOf(id)).toMatchObject({ state: "installing", install_attempts: 0 });
    expect((await api.move(id, "installed")).state).toBe("installed");
  });

  test("that a stranger asks for once it is complete stays so, and it is visible", async () => {
    const { id, mac } = await toInstall();
    const { token } = await fetchScript(MACHINE, mac);
    for (const said of ["started", "complete"]) await status(MACHINE, mac, token, said);
    expect(isInstallScript(await fetchScript(ELSEWHERE, mac))).toBe(false);
    expect((await nodeOf(id)).state).toBe("installed");
    expect(await eventsOf(id, "boot_contested")).toHaveLength(1);
  });

  test("is neither begun, steered nor ended by who reports without a token", async () => {
    const { id, mac } = await toInstall();
    const said = ["started", "failed", "complete"];
    for (const installation_status of said)
      expect((await call(ELSEWHERE, "POST", "/api/v1/report", { mac_address: mac, installation_status })).status).toBe(
        401,
      );
    const { status: byId } = await call(ELSEWHERE, "POST", `/api/v1/nodes/${id}/installation-status`, {
      installation_status: "started",
    });
    expect(byId).toBe(401);
    expect(await nodeOf(id)).toMatchObject({ state: "pending", last_install_error: null });
  });

  test("shows its command line to the boot that was armed for it, and to none that comes later", async () => {
    const { id, mac } = await toInstall();
    await hoursPass(id, 25);
    const late = await fetchScript(ELSEWHERE, mac);
    expect(late.text).not.toContain("secret-of-the-site");
    expect(late).toMatchObject({ text: expect.stringContaining(`millwright node arm ${id}`), token: "" });
    expect(await explainInstall(api.deps, id)).toMatchObject({
      waitingFor: [expect.stringContaining("armed too long ago")],
      nextCommands: expect.arrayContaining([expect.objectContaining({ command: `millwright node arm ${id}` })]),
    });
    await api.ask("POST", `/api/v1/nodes/${id}/arm`, {});
    expect((await fetchScript(MACHINE, mac)).text).toContain("secret-of-the-site");
    const { status: viewer } = await api.call("POST", `/api/v1/nodes/${id}/arm`, {}, { role: "viewer" });
    expect(viewer).toBe(403);
  });

  test("that waited too long is armed by a run on its machine, and by a workflow that is assigned", async () => {
    const [power, assigned] = [await toInstall(), await toInstall()];
    for (const { id, mac } of [power, assigned]) {
      await hoursPass(id, 25);
      expect(isInstallScript(await fetchScript(MACHINE, mac))).toBe(false);
    }
    await api.db.execute("update machines set active_run_id = 'power-on' where id = $1", [power.id]);
    await api.db.execute("update machines set active_run_id = null where id = $1", [power.id]);
    await api.ask("POST", "/api/v1/workflows", { id: "other", name: "Other", boot: PLAIN });
    await api.ask("PATCH", `/api/v1/nodes/${assigned.id}`, { workflow_id: "other" });
    for (const { mac } of [power, assigned]) expect(isInstallScript(await fetchScript(MACHINE, mac))).toBe(true);
  });

  test("cannot be armed where no boot leads on", async () => {
    const { id } = await api.register();
    expect(await api.call("POST", `/api/v1/nodes/${id}/arm`, {})).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("discovered") },
    });
  });

  test("goes on when the lease of its machine changes, and a token from elsewhere is worth nothing", async () => {
    const { id, mac } = await toInstall();
    const identity = "&serial=S-1&uuid=U-1";
    await fetchScript(MACHINE, mac, identity);
    const { token } = await fetchScript(IN_ITS_SUBNET, mac, identity);
    expect((await status(ELSEWHERE, mac, token, "started")).status).toBe(401);
    for (const said of ["started", "complete"]) await status(MACHINE, mac, token, said);
    expect((await nodeOf(id)).state).toBe("installed");
    expect(await eventsOf(id, "boot_contested")).toHaveLength(0);
  });
});
