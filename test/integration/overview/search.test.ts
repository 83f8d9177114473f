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
