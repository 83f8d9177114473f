import { expect, test } from "vitest";
import { type Datacentre, startDatacentre } from "../../support/datacentre.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let dc: Datacentre;
beforeAll(async () => {
  dc = await startDatacentre({ site: "racks=1" });
});
afterAll(() => dc.close());

test("expected shelves are explored, made, read and configured until they are ready", async () => {
  await dc.expectAll();
  await dc.until(async () => (await dc.shelves()).filter((shelf) => shelf.state.name === "ready").length === 8);
  const [shelf] = await dc.shelves();
  expect(shelf?.facts).toMatchObject({ powerState: "on", health: "ok" });
});
