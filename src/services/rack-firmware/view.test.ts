import { expect, test } from "vitest";
import type { CataloguedFirmware } from "../../lifecycles/rack-firmware/rack-firmware.ts";
import { viewFirmware } from "./view.ts";

const seen = (config: string, url: string) =>
  viewFirmware({
    config,
    files: [{ digest: "sha256:1", url, name: "a", bytes: null, sign: "bearer" }],
    state: { name: "available" },
    outcome: null,
  } as unknown as CataloguedFirmware);

test("the signature of an address is shown nowhere", () => {
  const url = "https://files.example/a.fwpkg?X-Signature=s3cret";
  const view = seen(`{ "Id": "fw?1", "Locations": [{ "Location": "${url}" }] }`, url);
  expect(view.fileOf("sha256:1")?.url).toBe("https://files.example/a.fwpkg");
  expect(JSON.parse(view.config)).toEqual({
    Id: "fw?1",
    Locations: [{ Location: "https://files.example/a.fwpkg" }],
  });
});

test("a configuration without one is shown as it was written", () => {
  const config = '{ "Id":  "fw", "Location": "https://files.example/a" }';
  expect(seen(config, "https://files.example/a").config).toBe(config);
});
