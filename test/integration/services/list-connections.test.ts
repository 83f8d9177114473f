import { expect, test } from "vitest";
import { silentLog } from "../../../src/kernel/log.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { pageExpectedPowerShelves } from "../../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { pageMachines, viewMachine } from "../../../src/services/machine/view.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import { LISTED_ROWS } from "../../support/listed-rows.ts";
import { startRunSurface } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let surface: Awaited<ReturnType<typeof startRunSurface>>;
beforeAll(async () => {
  surface = await startRunSurface();
  for (const kind of ["machines", "expected power shelves"] as const) await LISTED_ROWS[kind](surface.db, 1, 20);
});
afterAll(() => surface.close());

const page = { filter: "", pageSize: 5, pageToken: "", reach: undefined };
const listMachines = (deps: ServiceDeps) => pageMachines(deps, page, ({ machine }) => machine.id);

test("lists that take all connections of lists hold up nothing else", async () => {
  const lists = openDatabase(surface.url, {
    ...{ log: silentLog, applicationName: "lists", max: 1 },
    ...{ connectTimeout: milliseconds(300), statementTimeout: milliseconds(10_000) },
  });
  const deps = { ...surface.deps, lists };
  const [first] = (await listMachines(deps)).items;
  const held = Promise.withResolvers<void>();
  const isHeld = Promise.withResolvers<void>();
  const holder = lists.transaction(async (tx) => {
    await tx.query("select 1");
    isHeld.resolve();
    await held.promise;
  });
  await isHeld.promise;
  await expect(listMachines(deps)).rejects.toMatchObject({ kind: "unavailable" });
  expect((await viewMachine(deps, first ?? "")).machine.id).toBe(first);
  held.resolve();
  await holder;
  expect((await listMachines(deps)).items).toHaveLength(5);
  await lists.close();
});

test("a page token of one list is refused by another", async () => {
  const { nextPageToken: pageToken } = await pageMachines(surface.deps, page, ({ machine }) => machine.id);
  expect(pageToken).not.toBe("");
  const all = { rackId: undefined, bmcMac: undefined, deviceId: undefined, explored: undefined };
  await expect(pageExpectedPowerShelves(surface.deps, { ...page, ...all, pageToken })).rejects.toMatchObject({
    kind: "invalid_argument",
  });
});
