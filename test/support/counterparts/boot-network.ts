import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ProcessBench, StartedProcess } from "../processes/process-bench.ts";

/**
 * A network for machines that boot, in a namespace of its own: a bridge with a virtual machine's tap and one end of a cable. The
 * other end is ours. DHCP and TFTP are inside; nothing else of this machine is reached.
 */
export interface BootNetwork {
  /** Ours, where the machines find the server. */
  readonly hostAddress: string;
  readonly subnet: string;
  /** `first,last` for the machines. */
  readonly range: string;
  readonly bridge: string;
  readonly tap: string;
  /** Starts a program inside. */
  start(command: string, ...args: readonly string[]): StartedProcess;
  /** Starts one on another machine of the network, whose interface is `eth0`. */
  startNextDoor(command: string, ...args: readonly string[]): StartedProcess;
  close(): void;
}

const PROGRAMS = {
  ip: "iproute2",
  dnsmasq: "dnsmasq-base",
  "qemu-system-x86_64": "qemu-system-x86",
  busybox: "busybox-static",
} as const;
const FILES = {
  "/usr/lib/ipxe/qemu/pxe-virtio.rom": "ipxe-qemu",
  "/usr/lib/ipxe/snponly.efi": "ipxe",
  "/usr/share/OVMF/OVMF_CODE_4M.fd": "ovmf",
} as const;

/** Why no machine can boot here; undefined when one can. */
export function whyNoBootNetwork(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "needs Linux and root, for a network namespace";
  const programs = Object.entries(PROGRAMS).filter(([name]) => !isProgram(name));
  const files = Object.entries(FILES).filter(([path]) => !existsSync(path));
  const missing = [...programs, ...files].map(([, debianPackage]) => debianPackage);
  if (missing.length > 0) return `needs Debian's ${missing.join(", ")}`;
  const probe = `mwprobe${process.pid}`;
  const { status, stderr } = ip("netns", "add", probe);
  if (status !== 0) return `network namespaces cannot be made here: ${stderr.trim()}`;
  const tap = ip("-n", probe, "tuntap", "add", "dev", "probe", "mode", "tap");
  ip("netns", "delete", probe);
  return tap.status === 0 ? undefined : `taps cannot be made here: ${tap.stderr.trim()}`;
}

const isProgram = (name: string): boolean =>
  (process.env.PATH ?? "")
    .split(":")
    .concat("/usr/sbin", "/sbin")
    .some((directory) => existsSync(join(directory, name)));

const ip = (...args: readonly string[]) => spawnSync("ip", args, { encoding: "utf8" });

function must(...args: readonly string[]): void {
  const { status, stderr } = ip(...args);
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
}

export function openBootNetwork(bench: ProcessBench): BootNetwork {
  const namespace = `mwboot${process.pid}`;
  const nextDoor = `mwnext${process.pid}`;
  const ours = `mwb${process.pid}`;
  // Of the range for tests between networks; the process decides, so that two that run at once do not meet.
  const net = `198.${18 + (process.pid % 2)}.${(process.pid >> 1) % 256}`;
  const close = () => {
    // With the namespace go the bridge, the tap and both ends of the cable.
    for (const each of [namespace, nextDoor]) ip("netns", "delete", each);
    ip("link", "delete", ours);
  };
  const within = (...args: readonly string[]) => must("-n", namespace, ...args);
  try {
    for (const each of [namespace, nextDoor]) must("netns", "add", each);
    within("link", "set", "lo", "up");
    within("link", "add", "br0", "type", "bridge");
    within("tuntap", "add", "dev", "tap0", "mode", "tap");
    must("link", "add", ours, "type", "veth", "peer", "name", "up0", "netns", namespace);
    within("link", "add", "next0", "type", "veth", "peer", "name", "eth0", "netns", nextDoor);
    for (const port of ["tap0", "up0", "next0"]) within("link", "set", port, "master", "br0", "up");
    within("address", "add", `${net}.2/24`, "dev", "br0");
    // For router advertisements, which iPXE would wait for; where there is no IPv6, it does not.
    ip(
      "-n",
      namespace,
      "address",
      "add",
      `fd00:6d77:${(process.pid % 65_536).toString(16)}::2/64`,
      "dev",
      "br0",
      "nodad",
    );
    within("link", "set", "br0", "up");
    must("-n", nextDoor, "address", "add", `${net}.3/24`, "dev", "eth0");
    must("-n", nextDoor, "link", "set", "eth0", "up");
    must("address", "add", `${net}.1/24`, "dev", ours);
    must("link", "set", ours, "up");
  } catch (error) {
    close();
    throw error;
  }
  return {
    hostAddress: `${net}.1`,
    subnet: `${net}.0`,
    range: `${net}.100,${net}.120`,
    bridge: "br0",
    tap: "tap0",
    start: (...words) => bench.start({ command: "ip", args: ["netns", "exec", namespace, ...words] }),
    startNextDoor: (...words) => bench.start({ command: "ip", args: ["netns", "exec", nextDoor, ...words] }),
    close,
  };
}
