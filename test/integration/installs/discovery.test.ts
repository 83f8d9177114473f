import { describe, expect, test } from "vitest";
import { addressGroup } from "../../../src/api/transport/limits/client-address.ts";
import { forgetOld } from "../../../src/engine/retention.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import { DiscoveryGate, type DiscoveryRules } from "../../../src/services/install/boot/discovery-gate.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { testSealKey } from "../../support/journal/sealed-journal.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, type Node, startInstalls } from "./installs-under-test.ts";

/** What a stranger on the boot network can bring about with MAC addresses that nobody knows. */
let api: InstallsUnderTest;
let refused: string[] = [];
beforeAll(async () => {
  api = await startInstalls({ requireTokens: true });
});
afterAll(() => api.close());

const mac = (group: number, n: number) =>
  `02:66:00:00:${[group, n].map((part) => part.toString(16).padStart(2, "0")).join(":")}`;
const idOf = (address: string) => `m-${address.replaceAll(":", "")}`;
const bootAs = async (address: string) =>
  (await api.call("GET", `/api/v1/boot?mac=${address}`, undefined, { as: null })).text;
const isKnown = async (address: string) => (await api.call("GET", `/api/v1/nodes/${idOf(address)}`)).status === 200;
const isChecked = async (address: string) =>
  (await api.db.query("select from condition_looks where machine_id = $1", [idOf(address)])).length > 0;

function limitTo(change: Partial<DiscoveryRules>): void {
  refused = [];
  api.boot.discovery = new DiscoveryGate({
    most: 1_000,
    perMinute: 1_000,
    perAddress: 1_000,
    isExempt: () => false,
    placeOf: addressGroup,
    clock: systemClock,
    refused: (limit) => refused.push(limit),
    ...change,
  });
}

describe("machines that nobody knows", () => {
  test("are put on record up to a limit, and the others boot from their disk; one that is approved makes room", async () => {
    const here = await api.db.query<{ count: number }>(
      "select count(*)::int from installs where found_by_boot and state = 'discovered'",
    );
    limitTo({ most: (here[0]?.count ?? 0) + 2 });
    for (let n = 0; n < 4; n += 1) expect(await bootAs(mac(1, n))).toContain("exit");
    expect(await Promise.all([0, 1, 2, 3].map((n) => isKnown(mac(1, n))))).toEqual([true, true, false, false]);
    expect(refused).toEqual(["discovered", "discovered"]);
    await api.move(idOf(mac(1, 0)), "pending");
    await bootAs(mac(1, 3));
    expect(await isKnown(mac(1, 3))).toBe(true);
  });

  test("come only so fast from one address, while those on record boot as ever", async () => {
    limitTo({ perAddress: 1 });
    for (let n = 0; n < 3; n += 1) await bootAs(mac(2, n));
    expect(await Promise.all([0, 1, 2].map((n) => isKnown(mac(2, n))))).toEqual([true, false, false]);
    expect(refused).toEqual(["discovered_per_address", "discovered_per_address"]);
    expect(await bootAs(mac(2, 0))).toContain("awaits approval");
  });

  test("are checked by nobody until they are approved", async () => {
    limitTo({});
    await bootAs(mac(3, 0));
    expect(await isChecked(mac(3, 0))).toBe(false);
    await api.move(idOf(mac(3, 0)), "pending");
    expect(await isChecked(mac(3, 0))).toBe(true);
  });

  test("are checked once their owner says where they are", async () => {
    limitTo({});
    await bootAs(mac(3, 1));
    await api.db.execute("update machines set bmc_endpoint = '192.0.2.1' where id = $1", [idOf(mac(3, 1))]);
    expect(await isChecked(mac(3, 1))).toBe(true);
  });
});

describe("of those that did not boot again", () => {
  const DAY = hours(24);
  const forget = () =>
    forgetOld(
      {
        db: api.db,
        log: silentLog,
        retention: hours(365 * 24),
        refusalsKept: DAY,
        sealKey: testSealKey,
        discovered: { stores: allStores, unseenFor: DAY },
      },
      new AbortController().signal,
    );
  const unseen = (address: string) =>
    api.db.execute(
      "update installs set facts = facts || jsonb_build_object('lastSeenAt', now() - interval '25 h') where id = $1",
      [idOf(address)],
    );

  test("nothing is left, and one that boots after that is put on record again", async () => {
    limitTo({});
    const [gone, recent] = [mac(4, 0), mac(4, 1)];
    for (const address of [gone, recent]) await bootAs(address);
    await unseen(gone);
    await forget();
    expect([await isKnown(gone), await isKnown(recent)]).toEqual([false, true]);
    for (const table of ["machines", "installs", "host_reprovisions", "machine_identities where machine_id"]) {
      const [from = "", column = "id"] = table.split(" where ");
      expect(await api.db.query(`select from ${from} where ${column} = $1`, [idOf(gone)])).toEqual([]);
    }
    const last = await api.db.query(
      "select to_state, actor from journal where id = $1 and kind = 'install' order by seq desc limit 1",
      [idOf(gone)],
    );
    expect(last).toMatchObject([{ actor: "retention" }]);
    await bootAs(gone);
    expect(await isKnown(gone)).toBe(true);
  });

  test.each<[string, (node: Node) => Promise<unknown>]>([
    ["was approved", (node) => api.move(node.id, "pending")],
    ["has a tag", (node) => api.ask("POST", `/api/v1/nodes/${node.id}/tags`, { tag: "gpu" })],
    [
      "was given a label",
      (node) => api.db.execute(`update machines set labels = '{"a":"b"}' where id = $1`, [node.id]),
    ],
    ["had a run", (node) => api.db.execute("update machines set last_run_id = 'r' where id = $1", [node.id])],
    [
      "is claimed",
      (node) =>
        api.db.execute(
          "insert into claims (thing_kind, thing_id, holder_kind, holder_id, reason, granted_at) values ('machine', $1, 'run', 'r', 'r', now())",
          [node.id],
        ),
    ],
  ])("one that %s stays", async (what, refer) => {
    limitTo({});
    const address = mac(5, what.length);
    await bootAs(address);
    await refer(await api.ask<Node>("GET", `/api/v1/nodes/${idOf(address)}`));
    await unseen(address);
    await forget();
    expect(await isKnown(address)).toBe(true);
  });

  test("one that a person registered stays", async () => {
    const node = await api.register();
    await api.db.execute("update installs set created_at = now() - interval '90 days' where id = $1", [node.id]);
    await forget();
    expect((await api.call("GET", `/api/v1/nodes/${node.id}`)).status).toBe(200);
  });
});
