import { Code, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { SearchService } from "../../../contract/millwright/v1/search_pb.js";
import { runCli } from "../../../src/cli/run-cli.ts";
import { findTerms } from "../../../src/store/search/search-terms.ts";
import { createFakeTerminal } from "../../support/cli/fake-terminal.ts";
import { LISTED_ROWS } from "../../support/listed-rows.ts";
import { plansOf } from "../../support/query-plans.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";
import { type MachinesUnderTest, startMachines } from "../machines/machines-under-test.ts";

let site: MachinesUnderTest;
beforeAll(async () => {
  site = await startMachines();
  await site.machines.registerMachine({
    machine: {
      machineId: "m-rack7-0412",
      spec: { rack: "rack-7", serial: "MCQ105", macAddresses: ["02:00:5E:10:AB:CD"], sshEndpoint: "10.3.0.12:22" },
    },
  });
  await site.machines.registerMachine({ machine: { machineId: "m-old", spec: { serial: "MCQ105-OLD" } } });
  await site.setPhase("m-old", "RETIRED");
  await site.db.execute("update racks set name = 'Row C' where id = 'rack-7'");
  await site.addRun({ id: "run-8fa7", machineId: "m-rack7-0412" });
});
afterAll(() => site.close());

const client = () => createClient(SearchService, site.api.grpc());
const found = async (query: string, more: object = {}) =>
  (await client().search({ query, ...more })).hits.map(({ kind, id, field }) => `${kind} ${id} ${field}`);

test.each([
  ["m-rack7-0412", ["machine m-rack7-0412 id"]],
  ["M-RACK7", ["machine m-rack7-0412 id"]],
  ["0412", ["machine m-rack7-0412 id"]],
  // One that is retired comes last, however well it is found.
  ["mcq105", ["machine m-rack7-0412 serial", "machine m-old serial"]],
  ["02:00:5e:10:ab:cd", ["machine m-rack7-0412 mac"]],
  ["0200.5E10.ABCD", ["machine m-rack7-0412 mac"]],
  ["10-ab-cd", ["machine m-rack7-0412 mac"]],
  ["ab:cd", ["machine m-rack7-0412 mac"]],
  ["10.3.0.12", ["machine m-rack7-0412 ssh"]],
  ["row c", ["rack rack-7 name"]],
  ["rack-7", ["rack rack-7 id"]],
  ["8fa7", ["run run-8fa7 id"]],
  ["nothing like it", []],
  ["%", null],
  ["m_", []],
])("%j finds %j", async (query, hits) => {
  if (hits === null) expect(await refusal(found(query))).toMatchObject({ field: "query" });
  else expect(await found(query)).toEqual(hits);
});

test("a hit says in which state and rack the thing is, and what people call it", async () => {
  const { hits, cut } = await client().search({ query: "0412" });
  expect(hits[0]).toMatchObject({ state: "FACTORY_READY", rackId: "rack-7", value: "m-rack7-0412" });
  expect(cut).toBe(false);
  expect((await client().search({ query: "rack-7" })).hits[0]).toMatchObject({ name: "Row C" });
});

test("what changes is found by its new value alone, and what goes is not found", async () => {
  await site.machines.registerMachine({ machine: { machineId: "m-new", spec: { serial: "BEFORE1" } } });
  await site.db.execute(
    `update machines set serial = 'AFTER1', facts = facts || '{"macs": ["02:00:00:aa:bb:01"]}' where id = 'm-new'`,
  );
  expect(await found("before1")).toEqual([]);
  expect(await found("after1")).toEqual(["machine m-new serial"]);
  expect(await found("aa:bb:01")).toEqual(["machine m-new mac"]);
  await site.db.execute("update racks set name = 'Row D' where id = 'rack-7'");
  expect(await found("row c")).toEqual([]);
  await site.db.execute("delete from racks where id = 'rack-7'");
  expect(await found("row d")).toEqual([]);
});

/** As migration 0096 made them, with two regular expressions for each letter. */
const TERMS_BEFORE = `
  create function terms_before(value text) returns table (term text, is_whole boolean) language plpgsql immutable as $$
  declare
    small text := lower(value);
  begin
    if small ~ '^([0-9a-f]{2}:){5}[0-9a-f]{2}$' then
      return query select substr(replace(small, ':', ''), at), at = 1 from unnest(array[1, 7, 9]) as at;
    else
      return query select left(substr(small, at), 100), at = 1
        from generate_series(1, least(length(small), 100)) as at
       where at = 1 or (substr(small, at - 1, 1) ~ '[-_./:@ ]' and substr(small, at, 1) !~ '[-_./:@ ]')
       order by at limit 4;
    end if;
  end $$`;

test("a value has the terms that it always had", async () => {
  const x = "x".repeat(98);
  const values = [
    "",
    "a",
    "-",
    "--",
    "-a",
    "a-",
    "A b\nC-d",
    "a--b",
    "SN-10.0.0.1",
    "02:00:5E:10:AB:CD",
    "02:00:5e:10:ab",
    "a_b.c/d:e@f g",
  ];
  values.push(`${x}-y`, `${x} -y`, `${x}xx-y`, `a-${x}xxxx`, "ä-Öl 漢-字", "[fe80::1]", "a-b-c-d-e-f");
  await site.db.transaction(async (tx) => {
    await tx.query(TERMS_BEFORE);
    const terms = (source: string) =>
      tx.query(`select v, t.* from unnest($1::text[]) as v, ${source}(v) as t order by v, is_whole desc, term`, [
        values,
      ]);
    expect(await terms("search_terms_in")).toEqual(await terms("terms_before"));
    await tx.query("drop function terms_before");
  });
});

const CHANGES: [table: string, kind: string, inserted: string, sets: string[], stays: string[]][] = [
  [
    "power_shelves",
    "power_shelf",
    "insert into power_shelves (id, name, bmc_mac, bmc_address, bmc_port, state) values ($1, 'shelf a', '02:00:00:00:00:01', '10.0.0.1', 443, 'ready')",
    [
      `facts = '{"serial": "SN 1"}'`,
      `facts = '{"serial": "SN 2"}', version = version + 1`,
      "name = 'b', bmc_address = '10.0.0.2'",
      "facts = '{}'",
    ],
    ["id", "name", "mac", "bmc"],
  ],
  [
    "machines",
    "machine",
    "insert into machines (id, provider, state, serial, macs, bmc_endpoint, ssh_endpoint) values ($1, 'fake', 'READY', 'A-1', array['02:00:00:00:00:02'], 'https://10.0.0.3:443', '10.0.0.4:22')",
    [
      `facts = '{"serial": "A-1"}'`,
      `facts = '{"serial": "B-1", "macs": ["02:00:00:00:00:03"]}'`,
      "serial = null",
      "macs = '{}', bmc_endpoint = '10.0.0.5'",
      "facts = '{}'",
    ],
    ["id", "mac", "bmc", "ssh"],
  ],
];

test.each(CHANGES)(
  "what changes of %s writes the terms of its fields, and no others",
  async (table, kind, insert, sets, stays) => {
    const id = `changing-${kind.replace("_", "-")}`;
    const terms = () =>
      site.db.query<{ field: string; row: string }>(
        "select field, term, value, is_whole, xmin::text as row from search_terms where kind = $1 and id = $2 order by field, term",
        [kind, id],
      );
    await site.db.query(insert, [id]);
    const untouched = async () => (await terms()).filter(({ field }) => stays.includes(field));
    const before = await untouched();
    expect(before.length).toBeGreaterThan(stays.length - 1);
    for (const [index, set] of sets.entries()) {
      await site.db.query(`update ${table} set ${set} where id = $1`, [id]);
      if (index === 0) expect(await untouched()).toEqual(before);
      const fresh = await site.db.query(
        `select distinct on (v.field, t.term) v.field, t.term, v.value, t.is_whole from ${table} as m, search_values_of(m) as v, search_terms_in(v.value) as t
        where m.id = $1 and v.value <> '' order by v.field, t.term`,
        [id],
      );
      expect((await terms()).map(({ row: _, ...term }) => term)).toEqual(fresh);
    }
  },
);

test.each([
  [{ query: "m" }, "query"],
  [{ query: " m " }, "query"],
  [{ query: "m".repeat(101) }, "query"],
  [{ query: "m-", kinds: ["toaster"] }, "kinds"],
  [{ query: "m-", limit: 101 }, "limit"],
  [{ query: "m-", limit: -1 }, "limit"],
])("a search %j is refused, naming %s", async (request, field) => {
  expect(await refusal(client().search(request))).toMatchObject({ code: Code.InvalidArgument, field });
});

test("what finds very much is cut and says so, and every kind has its place", async () => {
  await LISTED_ROWS.machines(site.db, 1, 400);
  await LISTED_ROWS.runs(site.db, 1, 5);
  const { hits, cut } = await client().search({ query: "m-0", limit: 10 });
  expect(hits).toHaveLength(10);
  expect(cut).toBe(true);
  expect(await found("m-", { kinds: ["run"] })).toEqual([]);
  expect(await found("run-0", { kinds: ["run"] })).toHaveLength(5);
});

test("among the terms of 20,000 machines the index finds them", async () => {
  await site.db.execute(
    `insert into machines (id, provider, state, serial, macs)
     select 'many-' || i, 'fake', 'READY', 'SN' || i, array['02:aa:00:' || lpad(to_hex(i / 65536), 2, '0') || ':' || lpad(to_hex(i / 256 % 256), 2, '0') || ':' || lpad(to_hex(i % 256), 2, '0')]
       from generate_series(1, 20000) i`,
  );
  await site.db.query("analyze search_terms");
  const plan = await plansOf(site.db, (db) =>
    findTerms(db, { kinds: ["machine", "run"], prefixes: ["many-1"], limit: 300 }),
  );
  expect(plan).toMatch(/Index.* using search_terms_pkey/);
  expect(plan).not.toMatch(/Seq Scan/);
  expect(await found("sn19999")).toEqual(["machine many-19999 serial"]);
});

test("the command line finds them", async () => {
  const terminal = createFakeTerminal();
  expect(await runCli(["search", "mcq105"], { version: "1", terminal, transport: site.api.grpc() })).toBe(0);
  expect(terminal.out()).toMatch(/machine +m-rack7-0412 .*rack-7 +serial MCQ105/);
});
