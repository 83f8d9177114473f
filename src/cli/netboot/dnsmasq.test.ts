import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type DnsmasqOptions, writeDnsmasq } from "./dnsmasq.ts";

const SERVER = "http://10.10.0.1:8080";
const RANGE = "10.10.0.100,10.10.0.200";
const options = (change: Partial<DnsmasqOptions> = {}): DnsmasqOptions => ({
  interface: "eno2",
  lease: "1h",
  tftpRoot: "/usr/lib/ipxe",
  uefi: "snponly.efi",
  ra: true,
  ...change,
});
const EVERYTHING = {
  router: "10.10.0.1",
  dns: ["10.10.0.1", "10.10.0.2"],
  arm64: "arm64/snponly.efi",
  httpBoot: "/files/ipxe.efi",
};

const VARIANTS: readonly (readonly [string, DnsmasqOptions])[] = [
  ["addresses", options({ range: RANGE })],
  ["addresses with a mask and all that can be said", options({ range: `${RANGE},255.255.255.0`, ...EVERYTHING })],
  ["addresses without router advertisements", options({ range: RANGE, ra: false })],
  ["a proxy", options({ proxy: "10.10.0.0" })],
  [
    "a proxy with a mask, ARM and HTTP",
    options({ proxy: "10.10.0.0,255.255.255.0", arm64: "a.efi", httpBoot: "/files/i.efi" }),
  ],
];

const dnsmasq = ["/usr/sbin/dnsmasq", "dnsmasq"].find((each) => spawnSync(each, ["--version"]).status === 0);

describe("a configuration", () => {
  test.for(VARIANTS)("that gives %s is one that dnsmasq accepts", ([, variant], { skip }) => {
    if (dnsmasq === undefined) skip("needs Debian's dnsmasq-base");
    const directory = mkdtempSync(join(tmpdir(), "millwright-dnsmasq-"));
    try {
      const file = join(directory, "dnsmasq.conf");
      writeFileSync(file, writeDnsmasq(variant, SERVER));
      const { status, stderr } = spawnSync(dnsmasq ?? "", ["--test", `--conf-file=${file}`], { encoding: "utf8" });
      expect(status, stderr).toBe(0);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  test("that is none would be refused by dnsmasq", ({ skip }) => {
    if (dnsmasq === undefined) skip("needs Debian's dnsmasq-base");
    const { status } = spawnSync(dnsmasq ?? "", ["--test", "--conf-file=-"], { input: "no-such-option=1\n" });
    expect(status).not.toBe(0);
  });

  test("speaks on its interface alone, and knows no names", () => {
    const lines = writeDnsmasq(options({ range: RANGE }), SERVER).split("\n");
    expect(lines).toEqual(
      expect.arrayContaining(["port=0", "bind-interfaces", "except-interface=lo", "interface=eno2"]),
    );
  });

  test("sends iPXE to the server with all that it knows, and other firmware to iPXE", () => {
    const text = writeDnsmasq(options({ range: RANGE }), SERVER);
    const query = ["mac=\\$\\{netX/mac\\}", ".*serial=\\$\\{serial:uristring\\}", ".*platform=\\$\\{platform\\}"].join(
      "",
    );
    expect(text).toMatch(new RegExp(`^dhcp-boot=tag:ipxe,"${SERVER}/api/v1/boot\\?${query}"$`, "m"));
    expect(text).toContain("dhcp-boot=tag:bios,tag:!ipxe,undionly.kpxe");
    expect(text).toContain("dhcp-boot=tag:uefi,tag:!ipxe,snponly.efi");
  });

  test("fits what it says into the file name of an answer: with a proxy, or a long address, by a script that asks on", () => {
    const long = `http://${"very-long-name.".repeat(5)}example:8080`;
    for (const text of [
      writeDnsmasq(options({ proxy: "10.10.0.0" }), SERVER),
      writeDnsmasq(options({ range: RANGE }), long),
    ])
      expect(text).toMatch(/^dhcp-boot=tag:ipxe,"http:[^"]+\/api\/v1\/boot\.ipxe"(,,10\.10\.0\.1)?$/m);
    for (const [, variant] of VARIANTS)
      for (const [, file = ""] of writeDnsmasq(variant, SERVER).matchAll(/^dhcp-boot=tag:ipxe,"([^"]*)"/gm))
        expect(file.length).toBeLessThanOrEqual(variant.proxy === undefined ? 255 : 127);
  });
});

test.each([
  [SERVER, "10.10.0.1"],
  ["http://boot.example:8080", "10.10.0.0"],
])("a proxy names a server beside the file for %s: without one iPXE passes the answer over", (server, next) => {
  const text = writeDnsmasq(options({ proxy: "10.10.0.0,255.255.255.0" }), server);
  expect(text).toContain(`dhcp-boot=tag:ipxe,"${server}/api/v1/boot.ipxe",,${next}\n`);
});

test.each([
  ["--interface", options({ interface: "eno2\nport=53", range: RANGE })],
  ["--interface", options({ interface: "an-interface-too-long", range: RANGE })],
  ["--range", options({ range: "10.10.0.100" })],
  ["--range", options({ range: "10.10.0.200,10.10.0.100" })],
  ["--range", options({ range: "10.10.0.1,10.10.0.9,255.0.255.0" })],
  ["--range", options({ range: "fd00::1,fd00::9" })],
  ["--range", options({})],
  ["--proxy", options({ range: RANGE, proxy: "10.10.0.0" })],
  ["--proxy", options({ proxy: "10.10.0.0/24" })],
  ["--router", options({ proxy: "10.10.0.0", router: "10.10.0.1" })],
  ["--router", options({ range: RANGE, router: "gateway" })],
  ["--dns", options({ range: RANGE, dns: ["8.8.8"] })],
  ["--lease", options({ range: RANGE, lease: "soon" })],
  ["--tftp-root", options({ range: RANGE, tftpRoot: "ipxe" })],
  ["--tftp-root", options({ range: RANGE, tftpRoot: "/srv/a\ndhcp-script=/x" })],
  ["--uefi", options({ range: RANGE, uefi: "../../etc/shadow" })],
  ["--arm64", options({ range: RANGE, arm64: "a,b" })],
  ["--http-boot", options({ range: RANGE, httpBoot: "ipxe.efi" })],
])("%s that cannot be meant is refused by its name", (option, variant) => {
  expect(() => writeDnsmasq(variant, SERVER)).toThrow(option);
});

test.each([
  "http://127.0.0.1:8080",
  "http://localhost:8080",
  "http://[::1]:8080",
  "http://0.0.0.0:8080",
  "ftp://10.0.0.1",
  "10.0.0.1",
  "http://10.0.0.1/x",
  'http://10.0.0.1"',
  `http://${"a".repeat(120)}`,
])("%s is refused: machines must reach the server", (server) => {
  expect(() => writeDnsmasq(options({ range: RANGE }), server)).toThrow("--boot-url");
});
