import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { listMachineAlerts } from "../../../src/store/machine/alerts.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, type Node, type Page, startInstalls } from "./installs-under-test.ts";

/** The attacks of docs/security/threat-model.md on boots and reports, over HTTP, each from an address of its own. */
const MACHINE = "127.0.0.1";
const IN_ITS_SUBNET = "127.0.0.2";
const ELSEWHERE = "127.0.9.9";

let api: InstallsUnderTest;
beforeAll(async () => {
  api = await startInstalls();
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
