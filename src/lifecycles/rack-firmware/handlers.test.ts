import { expect, test } from "vitest";
import { type RackFirmwareContext, rackFirmwareHandlers } from "./handlers.ts";
import type { CataloguedFirmware } from "./rack-firmware.ts";

const shownAt = (bytes: number, of?: number) =>
  rackFirmwareHandlers.downloading?.(
    {} as CataloguedFirmware,
    {
      artifacts: {},
      call: { streams: { underWay: { progress: { bytes, ...(of !== undefined && { of }) }, take: () => undefined } } },
    } as unknown as RackFirmwareContext,
  );

test.each([
  ["whose size is known", 8_000_000_000, 21],
  ["whose size nobody told", undefined, 14],
])("a download %s changes what it shows in few steps", async (_name, of, most) => {
  const shown = new Set<string>();
  for (let at = 0; at <= 1_000; at += 1) shown.add(JSON.stringify(await shownAt(at * 8_000_000, of)));
  expect(shown.size).toBeGreaterThan(5);
  expect(shown.size).toBeLessThanOrEqual(most);
});
