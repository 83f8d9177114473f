import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { isStatic, kernelRelease, missingApplets } from "./boot-kernel.ts";
import { type EnvironmentParts, makeEnvironment } from "./environment.ts";
import {
  aliasTable,
  dependencyTable,
  type KernelModule,
  moduleName,
  readModule,
  withDependencies,
} from "./kernel-modules.ts";

const said = (...texts: string[]) => Buffer.from(`ELF…\0${texts.join("\0")}\0…`, "latin1");
const module = (name: string, depends = "", release = "6.1.0"): KernelModule =>
  readModule(`${name}.ko`, said(`vermagic=${release} SMP mod_unload`, `depends=${depends}`, `alias=pci:v*${name}*`));
const MODULES = new Map(
  [
    module("virtio"),
    module("virtio-net", "net-failover,virtio"),
    module("net_failover", "failover"),
    module("failover"),
  ].map((each) => [each.name, each]),
);
const find = (name: string) => MODULES.get(name);

describe("modules of a kernel", () => {
  test("say what they need and what they drive", () => {
    expect(
      readModule(
        "kernel/net/virtio-net.ko.xz",
        said("alias=virtio:d1v*", "depends=virtio,net-failover", "alias=x", "vermagic=6.1.0 SMP"),
      ),
    ).toMatchObject({
      name: "virtio_net",
      depends: ["virtio", "net_failover"],
      aliases: ["virtio:d1v*", "x"],
      release: "6.1.0",
    });
    expect(moduleName("a/b-c.ko.zst")).toBe("b_c");
  });

  test("come after what they need, once each; what is built in is left out", () => {
    const names = withDependencies(["virtio_net", "nvme", "virtio"], find).map(({ name }) => name);
    expect(names).toEqual(["failover", "net_failover", "virtio", "virtio_net"]);
  });

  test("that need each other do not keep us for ever", () => {
    const round = new Map([module("a", "b"), module("b", "a")].map((each) => [each.name, each]));
    expect(withDependencies(["a"], (name) => round.get(name)).map(({ name }) => name)).toEqual(["b", "a"]);
  });

  test("are found by modprobe through its tables", () => {
    const modules = withDependencies(["virtio_net"], find);
    expect(dependencyTable(modules)).toContain("virtio_net.ko: virtio.ko net_failover.ko failover.ko\n");
    expect(aliasTable(modules)).toContain("alias pci:v*virtio-net* virtio_net\n");
  });
});

/** An x86 kernel image as far as its header goes. */
function kernelOf(release: string): Buffer {
  const image = Buffer.alloc(2_048);
  image.write("HdrS", 0x202, "latin1");
  image.writeUInt16LE(0x100, 0x20e);
  image.write(`${release} (builder) #1 SMP\0`, 0x300, "latin1");
  return image;
}

/** A program with one segment, of the kind that needs a loader or of the kind that does not. */
function programOf(segment: "load" | "interpreter", applets: string): Buffer {
  const header = Buffer.alloc(64 + 56);
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
  header.writeBigUInt64LE(64n, 0x20);
  header.writeUInt16LE(56, 0x36);
  header.writeUInt16LE(1, 0x38);
  header.writeUInt32LE(segment === "load" ? 1 : 3, 64);
  return Buffer.concat([header, Buffer.from(`\0${applets.split(" ").join("\0")}\0`)]);
}

const APPLETS =
  "base64 blkdiscard blockdev cmp cut dd find head ifconfig ip mkfifo modprobe mount nc poweroff readlink reboot sed setsid sh sha256sum stat sync tail tee timeout tr udhcpc umount wc wget";
const parts = (change: Partial<EnvironmentParts> = {}): EnvironmentParts => ({
  kernel: kernelOf("6.1.0"),
  busybox: programOf("load", APPLETS),
  scripts: new Map([
    ["init.sh", Buffer.from("the first process")],
    ["agent.sh", Buffer.from("the agent")],
  ]),
  wanted: ["virtio_net"],
  findModule: find,
  ...change,
});

describe("what is put in", () => {
  test("says of itself which kernel it is, and whether it needs libraries", () => {
    expect(kernelRelease(kernelOf("6.1.0-50-amd64"))).toBe("6.1.0-50-amd64");
    expect(kernelRelease(Buffer.alloc(4_096))).toBeUndefined();
    expect(isStatic(programOf("load", ""))).toBe(true);
    expect(isStatic(programOf("interpreter", ""))).toBe(false);
    expect(isStatic(Buffer.from("#!/bin/sh"))).toBeUndefined();
    expect(missingApplets(programOf("load", "sh wget"), ["wget", "get", "udhcpc"])).toEqual(["get", "udhcpc"]);
  });
});

describe("an environment", () => {
  test("has the first process, busybox, the agent, and drivers below the kernel's release", () => {
    const { initrd, modules } = makeEnvironment(parts());
    const text = gunzipSync(initrd).toString("latin1");
    for (const path of [
      "init\0",
      "bin/busybox\0",
      "lib/millwright/agent.sh\0",
      "lib/modules/6.1.0/virtio_net.ko\0",
      "lib/modules/6.1.0/modules.dep\0",
    ])
      expect(text).toContain(path);
    expect(modules).toEqual(["failover", "net_failover", "virtio", "virtio_net"]);
  });

  test.each([
    ["--busybox", { busybox: Buffer.from("#!/bin/sh") }],
    ["--busybox: it needs libraries", { busybox: programOf("interpreter", APPLETS) }],
    ["--busybox: it lacks blkdiscard", { busybox: programOf("load", APPLETS.replace("blkdiscard ", "")) }],
    ["--modules: they are of kernel 6.1.0, and --kernel is 6.12.1", { kernel: kernelOf("6.12.1") }],
    [
      "--modules: they are of several kernels",
      {
        findModule: (name: string) =>
          module(name, name === "virtio_net" ? "virtio" : "", name === "virtio" ? "6.2" : "6.1.0"),
      },
    ],
  ])("is not made when it could not boot (%s)", (complaint, change) => {
    expect(() => makeEnvironment(parts(change))).toThrow(complaint);
  });
});
