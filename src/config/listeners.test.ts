import { describe, expect, test } from "vitest";
import { publicUrlsOf } from "./listeners.ts";
import { loadConfig } from "./load.ts";

const load = (settings: Readonly<Record<string, string>>) =>
  loadConfig({
    env: { MILLWRIGHT_HTTP_ALLOWED_HOSTS: "mw.example", ...settings },
    argv: [],
    host: { uid: 1000, homedir: "/home/pat", cwd: "/work" },
    readFile: () => "",
  });
const BOOT = { MILLWRIGHT_BOOT_LISTEN: "10.10.0.1:8090" };
const BMC = { MILLWRIGHT_BMC_LISTEN: "10.20.0.1:8091" };
const INSTALL = { MILLWRIGHT_INSTALL_PUBLIC_URL: "http://10.10.0.1:8080" };

describe("where others reach the server", () => {
  test.each([
    ["nobody has said", {}, { boot: null, bmc: null, firmware: null, fleet: null }],
    [
      "one URL speaks for all, while there is one listener",
      INSTALL,
      {
        boot: "http://10.10.0.1:8080",
        bmc: "http://10.10.0.1:8080",
        firmware: "http://10.10.0.1:8080",
        fleet: "http://10.10.0.1:8080",
      },
    ],
    [
      "it speaks for machines that boot alone, once they have a listener",
      { ...INSTALL, ...BOOT },
      { boot: "http://10.10.0.1:8080", bmc: null, firmware: null, fleet: null },
    ],
    [
      "it does not speak for BMCs that have a listener",
      { ...INSTALL, ...BMC },
      { boot: "http://10.10.0.1:8080", bmc: null, firmware: null, fleet: "http://10.10.0.1:8080" },
    ],
    [
      "BMCs fetch firmware where they fetch everything",
      { ...BMC, MILLWRIGHT_BMC_PUBLIC_URL: "https://bmc.site" },
      { boot: null, bmc: "https://bmc.site", firmware: "https://bmc.site", fleet: null },
    ],
    [
      "unless firmware has a place of its own",
      { MILLWRIGHT_BMC_PUBLIC_URL: "https://bmc.site", MILLWRIGHT_FIRMWARE_PUBLIC_URL: "https://cache.site" },
      { boot: null, bmc: "https://bmc.site", firmware: "https://cache.site", fleet: null },
    ],
  ])("%s", (_, settings, expected) => {
    expect(publicUrlsOf(load(settings).config)).toEqual(expected);
  });
});

describe("what is checked of listeners", () => {
  test.each([
    [{ ...BOOT, MILLWRIGHT_AUTH_MODE: "off" }, /boot\.listen is on 10\.10\.0\.1: without authentication all listeners/],
    [{ ...BMC, MILLWRIGHT_AUTH_MODE: "off" }, /bmc\.listen is on 10\.20\.0\.1/],
    [{ ...BOOT, MILLWRIGHT_BOOT_TLS: "true" }, /boot\.tls needs tls\.cert_file/],
    [{ MILLWRIGHT_BOOT_LISTEN: "127.0.0.1:8080" }, /http\.listen and boot\.listen are both 127\.0\.0\.1:8080/],
    [{ ...BOOT, MILLWRIGHT_BMC_LISTEN: "10.10.0.1:8090" }, /boot\.listen and bmc\.listen are both 10\.10\.0\.1:8090/],
  ])("%j is refused", (settings, why) => {
    expect(() => load(settings)).toThrow(why);
  });

  test.each([
    [{}, []],
    [INSTALL, []],
    [{ ...INSTALL, ...BOOT }, [/bmc\.public_url/, /fleet\.public_url/]],
    [BMC, [/^bmc\.listen is set and bmc\.public_url is not/]],
    [{ ...BMC, MILLWRIGHT_BMC_PUBLIC_URL: "https://bmc.site" }, []],
    [BOOT, []],
  ])("%j: warns of what has no address any more", (settings, expected) => {
    const { warnings } = load(settings);
    expect(warnings).toEqual(expected.map((each) => expect.stringMatching(each)));
  });

  test("free ports are no clash", () => {
    const free = "127.0.0.1:0";
    expect(() => load({ MILLWRIGHT_HTTP_LISTEN: free, MILLWRIGHT_BOOT_LISTEN: free })).not.toThrow();
  });
});
