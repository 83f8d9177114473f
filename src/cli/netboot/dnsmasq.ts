import { isIP, isIPv4 } from "node:net";
import { UsageError } from "../client/errors.ts";

/** As the command line gives it. */
export interface DnsmasqOptions {
  readonly interface: string;
  /** `first,last[,mask]`: this machine gives out addresses. */
  readonly range?: string;
  /** `10.0.0.0[,mask]`: another DHCP server gives out addresses; this one only tells what to boot. */
  readonly proxy?: string;
  readonly lease: string;
  readonly router?: string;
  readonly dns?: readonly string[];
  /** Where iPXE's programs lie. */
  readonly tftpRoot: string;
  readonly uefi: string;
  readonly arm64?: string;
  /** Firmware that speaks HTTP gets iPXE from here: a path below `/files/`. */
  readonly httpBoot?: string;
  /** False: no router advertisements. */
  readonly ra: boolean;
}

/** The boot file name of an answer that is no option of its own, as to a proxy's clients, has 128 bytes with its NUL. */
const LONGEST_PROXY_FILE = 127;
const LONGEST_OPTION = 255;

/** Firmware of these kinds asks for a program to boot (RFC 4578 and its registry). */
const X86_UEFI = [7, 9];
const ARM64_UEFI = [11];
const X86_UEFI_HTTP = [16];
const ARM64_UEFI_HTTP = [19];

/** A dnsmasq configuration that boots machines into Millwright: first iPXE, then what the server says. */
export function writeDnsmasq(options: DnsmasqOptions, server: string): string {
  check(options, server);
  const sections = [
    addresses(options),
    firmware(options),
    programs(options, server),
    iPxe(options, server),
    hurry(options),
  ];
  return [...HEAD, `interface=${options.interface}`, ...sections.flatMap((lines) => ["", ...lines]), ""].join("\n");
}

const HEAD = [
  "# Boots machines of this network into Millwright. Written by `millwright netboot dnsmasq`.",
  "# DHCP and TFTP alone: names are not our affair.",
  "port=0",
  "# Nothing is heard or said on any other network.",
  "bind-interfaces",
  "except-interface=lo",
];

function addresses({ range, proxy, lease, router, dns = [] }: DnsmasqOptions): string[] {
  if (proxy !== undefined) {
    const [subnet, mask] = proxy.split(",");
    return [
      "# Another DHCP server gives out the addresses; here is only told what to boot.",
      `dhcp-range=${subnet},proxy${mask === undefined ? "" : `,${mask}`}`,
    ];
  }
  return [
    `dhcp-range=${range},${lease}`,
    "dhcp-authoritative",
    router === undefined
      ? "# No router is named: this network need not lead anywhere.\ndhcp-option=option:router"
      : `dhcp-option=option:router,${router}`,
    ...(dns.length === 0 ? [] : [`dhcp-option=option:dns-server,${dns.join(",")}`]),
  ];
}

const matches = (tag: string, architectures: readonly number[]): string[] =>
  architectures.map((each) => `dhcp-match=set:${tag},option:client-arch,${each}`);

const firmware = ({ arm64, httpBoot }: DnsmasqOptions): string[] => [
  "# iPXE tells itself by option 175; other firmware by the kind of machine.",
  "dhcp-match=set:ipxe,175",
  ...matches("bios", [0]),
  ...matches("uefi", X86_UEFI),
  ...(arm64 === undefined ? [] : matches("arm64", ARM64_UEFI)),
  ...(httpBoot === undefined
    ? []
    : matches("http", arm64 === undefined ? X86_UEFI_HTTP : [...X86_UEFI_HTTP, ...ARM64_UEFI_HTTP])),
];

function programs(options: DnsmasqOptions, server: string): string[] {
  const { proxy, tftpRoot, uefi, arm64, httpBoot } = options;
  const tftp = ["enable-tftp", `tftp-root=${tftpRoot}`];
  const http =
    httpBoot === undefined
      ? []
      : [
          "# Firmware that boots over HTTP listens only to who calls itself by its name.",
          "dhcp-option-force=tag:http,tag:!ipxe,60,HTTPClient",
          `dhcp-boot=tag:http,tag:!ipxe,"${server}${httpBoot}"`,
        ];
  if (proxy !== undefined) {
    return [
      ...tftp,
      'pxe-service=tag:!ipxe,x86PC,"Millwright",undionly.kpxe',
      ...["BC_EFI", "X86-64_EFI"].map((kind) => `pxe-service=tag:!ipxe,${kind},"Millwright",${uefi}`),
      ...(arm64 === undefined ? [] : [`pxe-service=tag:!ipxe,ARM64_EFI,"Millwright",${arm64}`]),
      ...(httpBoot === undefined ? [] : ["dhcp-pxe-vendor=PXEClient,HTTPClient"]),
      ...http,
    ];
  }
  return [
    ...tftp,
    "dhcp-boot=tag:bios,tag:!ipxe,undionly.kpxe",
    `dhcp-boot=tag:uefi,tag:!ipxe,${uefi}`,
    ...(arm64 === undefined ? [] : [`dhcp-boot=tag:arm64,tag:!ipxe,${arm64}`]),
    ...http,
  ];
}

/** iPXE fills in its settings itself; `netX` is the interface that it boots with. */
const SETTINGS = {
  mac: "netX/mac",
  vendor: "manufacturer:uristring",
  model: "product:uristring",
  serial: "serial:uristring",
  uuid: "uuid",
  arch: "buildarch",
  platform: "platform",
} as const;
const QUERY = Object.entries(SETTINGS)
  .map(([name, setting]) => `${name}=\${${setting}}`)
  .join("&");

/**
 * iPXE takes a proxy's answer for one only if it names a server beside the file. With a whole address as the file nothing is ever
 * asked of that server: where `--boot-url` names none by its address, any address does.
 */
function nextServer(proxy: string, server: string): string {
  const host = URL.parse(server)?.hostname ?? "";
  return isIPv4(host) ? host : (proxy.split(",")[0] ?? "");
}

function iPxe({ proxy }: DnsmasqOptions, server: string): string[] {
  const whole = `${server}/api/v1/boot?${QUERY}`;
  const short = `${server}/api/v1/boot.ipxe`;
  const isShort = proxy !== undefined || whole.length > LONGEST_OPTION;
  return [
    isShort
      ? "# A script that asks with all that iPXE knows: the whole address does not fit here."
      : "# iPXE fills in what it knows.",
    `dhcp-boot=tag:ipxe,"${isShort ? short : whole}"${proxy === undefined ? "" : `,,${nextServer(proxy, server)}`}`,
  ];
}

const hurry = ({ ra, interface: name }: DnsmasqOptions): string[] =>
  ra
    ? [
        "# iPXE waits for a router advertisement before it goes on with IPv4: this one gives no addresses and ends the waiting.",
        "enable-ra",
        `dhcp-range=::,constructor:${name},ra-only`,
        `ra-param=${name},0,0`,
      ]
    : ["# No router advertisements (--no-ra): iPXE may wait for one for some 16 seconds at each boot."];

function check(options: DnsmasqOptions, server: string): void {
  const { range, proxy, router, dns = [], lease, tftpRoot, uefi, arm64, httpBoot } = options;
  need(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$/.test(options.interface),
    "--interface",
    options.interface,
    "is no name of an interface",
  );
  if ((range === undefined) === (proxy === undefined))
    throw new UsageError("give either --range, to give out addresses, or --proxy, where another DHCP server does");
  if (range !== undefined) checkRange(range);
  if (proxy !== undefined) {
    const [subnet = "", mask, ...more] = proxy.split(",");
    need(
      isIPv4(subnet) && more.length === 0,
      "--proxy",
      proxy,
      "is no IPv4 subnet (like 10.0.0.0 or 10.0.0.0,255.255.255.0)",
    );
    need(mask === undefined || isMask(mask), "--proxy", proxy, "has no netmask after the comma");
    for (const [name, value] of [
      ["--router", router],
      ["--dns", dns[0]],
    ] as const)
      if (value !== undefined)
        throw new UsageError(`${name}: goes with --range; with --proxy the other DHCP server tells`);
  }
  need(/^([1-9][0-9]{0,6}[smhd]?|infinite)$/.test(lease), "--lease", lease, "is no time (like 30m or 12h)");
  if (router !== undefined) need(isIPv4(router), "--router", router, "is no IPv4 address");
  for (const each of dns) need(isIPv4(each), "--dns", each, "is no IPv4 address");
  need(
    /^\/[^\s"',#\\]*$/.test(tftpRoot),
    "--tftp-root",
    tftpRoot,
    "is no absolute path without blanks, quotes and commas",
  );
  checkFile("--uefi", uefi);
  if (arm64 !== undefined) checkFile("--arm64", arm64);
  if (httpBoot !== undefined)
    need(
      /^\/files\/[\x21\x23-\x7e]+$/.test(httpBoot),
      "--http-boot",
      httpBoot,
      "is no path below /files/ of the server",
    );
  checkServer(server);
}

function checkRange(range: string): void {
  const [first = "", last = "", mask, ...more] = range.split(",");
  need(
    isIPv4(first) && isIPv4(last) && more.length === 0,
    "--range",
    range,
    "is not FIRST,LAST or FIRST,LAST,MASK of IPv4 addresses",
  );
  need(numberOf(first) <= numberOf(last), "--range", range, "ends before it begins");
  need(mask === undefined || isMask(mask), "--range", range, "has no netmask after the second comma");
}

const checkFile = (option: string, value: string): void =>
  need(
    /^[A-Za-z0-9._-][A-Za-z0-9._/-]{0,120}$/.test(value) && !value.includes(".."),
    option,
    value,
    "is no file name below --tftp-root",
  );

/** Machines must reach it, and early firmware knows no names of this machine alone. */
function checkServer(server: string): void {
  const { protocol, hostname, pathname, search } = URL.parse(server) ?? {};
  need(protocol === "http:" || protocol === "https:", "--boot-url", server, "is no http or https address");
  need(
    pathname === "/" && search === "" && /^[\x21\x23-\x7e]+$/.test(server),
    "--boot-url",
    server,
    "has more than a host and a port",
  );
  const host = (hostname ?? "").replace(/^\[|\]$/g, "");
  const isOurselves =
    host === "localhost" ||
    host === "::1" ||
    host === "::" ||
    host === "0.0.0.0" ||
    (isIP(host) === 4 && host.startsWith("127."));
  if (isOurselves)
    throw new UsageError(
      `--boot-url: ${server} is this machine alone; other machines cannot reach it`,
      "give the address that the server has on the network of --interface: --boot-url http://10.0.0.1:8080",
    );
  need(
    `${server}/api/v1/boot.ipxe`.length <= LONGEST_PROXY_FILE,
    "--boot-url",
    server,
    "is too long for a DHCP answer",
  );
}

function need(holds: boolean, option: string, value: string, complaint: string): void {
  if (!holds) throw new UsageError(`${option}: ${JSON.stringify(value.slice(0, 100))} ${complaint}`);
}

const numberOf = (address: string): number => address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);

function isMask(text: string): boolean {
  if (!isIPv4(text)) return false;
  const bits = numberOf(text).toString(2).padStart(32, "0");
  return /^1+0*$/.test(bits);
}
