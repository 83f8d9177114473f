import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EVENT_TYPES } from "./event-types.ts";

/** Words that are written to the journal as they stand in the code. */
const WRITTEN =
  /\btype: "(created|changed|updated|revoked|requested|assigned|[a-z]+(?:_[a-z]+)*_(?:changed|requested|ended|ignored|handed_out))"/g;

test("everything that the journal tells of can be asked for", () => {
  const src = join(import.meta.dirname, "..", "..");
  const files = ["services", "store", "engine"].flatMap((layer) =>
    readdirSync(join(src, layer), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
      .map((name) => readFileSync(join(src, layer, name), "utf8")),
  );
  const written = new Set(files.flatMap((text) => [...text.matchAll(WRITTEN)].map(([, word]) => word)));
  expect(written.size).toBeGreaterThan(5);
  expect([...written].filter((word) => !EVENT_TYPES.some((known) => known === word))).toEqual([]);
});
