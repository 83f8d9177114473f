import { gzipSync } from "node:zlib";
import { UsageError } from "../client/errors.ts";
import { isStatic, kernelRelease, missingApplets } from "./boot-kernel.ts";
import { type CpioEntry, writeCpio } from "./cpio.ts";
import { aliasTable, dependencyTable, type KernelModule, withDependencies } from "./kernel-modules.ts";

export interface EnvironmentParts {
  readonly kernel: Buffer;
  readonly busybox: Buffer;
  /** Our scripts, by file name. */
  readonly scripts: ReadonlyMap<string, Uint8Array>;
  /** Names of the modules to load, as far as there are such. */
  readonly wanted: readonly string[];
  /** The module of that name among the files given; undefined: there is none. */
  readonly findModule: (name: string) => KernelModule | undefined;
}

export interface Environment {
  readonly initrd: Buffer;
  readonly modules: readonly string[];
}

/** What the scripts call. */
const APPLETS =
  "base64 blkdiscard blockdev cmp cut dd find head ifconfig ip mkfifo modprobe mount nc poweroff readlink reboot sed setsid sh sha256sum stat sync tail tee timeout tr udhcpc umount wc wget".split(
    " ",
  );

/** The initrd in which images are installed and disks erased: busybox, our scripts, and drivers. */
export function makeEnvironment(parts: EnvironmentParts): Environment {
  checkBusybox(parts.busybox);
  const modules = withDependencies(parts.wanted, parts.findModule);
  const release = commonRelease(modules, kernelRelease(parts.kernel));
  const file = (path: string, data: Uint8Array | string, permissions = 0o644): CpioEntry => ({
    path,
    type: "file",
    permissions,
    data: typeof data === "string" ? Buffer.from(data) : data,
  });
  const init = parts.scripts.get("init.sh");
  if (init === undefined) throw new Error("the agent's init.sh is missing");
  const below = `lib/modules/${release}`;
  const initrd = writeCpio([
    file("init", init, 0o755),
    file("bin/busybox", parts.busybox, 0o755),
    // Before /dev is mounted the kernel looks for them here.
    { path: "dev/console", type: "character_device", permissions: 0o600, device: [5, 1] },
    { path: "dev/null", type: "character_device", permissions: 0o666, device: [1, 3] },
    ...[...parts.scripts]
      .filter(([name]) => name !== "init.sh")
      .map(([name, data]) => file(`lib/millwright/${name}`, data, 0o755)),
    ...(modules.length === 0
      ? []
      : [
          ...modules.map(({ name, data }) => file(`${below}/${name}.ko`, data)),
          file(`${below}/modules.dep`, dependencyTable(modules)),
          file(`${below}/modules.alias`, aliasTable(modules)),
        ]),
  ]);
  return { initrd: gzipSync(initrd), modules: modules.map(({ name }) => name) };
}

function checkBusybox(busybox: Buffer): void {
  const linked = isStatic(busybox);
  if (linked === undefined) throw new UsageError("--busybox: that is no 64-bit Linux program");
  if (!linked)
    throw new UsageError(
      "--busybox: it needs libraries, and the environment has none",
      "Debian's package busybox-static has one that needs none",
    );
  const missing = missingApplets(busybox, APPLETS);
  if (missing.length > 0) throw new UsageError(`--busybox: it lacks ${missing.join(", ")}`);
}

/** Modules of another kernel would not load, and the machine would have neither network nor disks. */
function commonRelease(modules: readonly KernelModule[], kernel: string | undefined): string {
  const releases = [...new Set(modules.map(({ release }) => release))];
  if (releases.length > 1)
    throw new UsageError(`--modules: they are of several kernels (${releases.join(", ")}); give those of one`);
  const [release] = releases;
  if (release !== undefined && kernel !== undefined && release !== kernel)
    throw new UsageError(`--modules: they are of kernel ${release}, and --kernel is ${kernel}`);
  return release ?? kernel ?? "";
}
