import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface DebianKernel {
  readonly image: string;
  readonly modules: string;
}

const PACKAGE = "linux-image-cloud-amd64";

/**
 * Debian's kernel for virtual machines, unpacked and not installed: nothing of this machine is changed by it. Kept between runs.
 * A text says why there is none.
 */
export function findDebianKernel(): DebianKernel | string {
  const { stdout } = spawnSync("apt-cache", ["depends", PACKAGE], { encoding: "utf8" });
  const name = /Depends: (linux-image-\S+)/.exec(stdout ?? "")?.[1];
  if (name === undefined) return `needs Debian's ${PACKAGE}, which apt does not know here`;
  const kept = join(tmpdir(), `millwright-test-${name}`);
  if (!existsSync(kept)) {
    const unpacked = mkdtempSync(join(tmpdir(), "millwright-test-kernel-"));
    try {
      const failure = downloadInto(unpacked, name);
      if (failure !== undefined) return failure;
      rename(unpacked, kept);
    } finally {
      rmSync(unpacked, { recursive: true, force: true });
    }
  }
  const image = readdirSync(join(kept, "boot")).find((file) => file.startsWith("vmlinuz-"));
  if (image === undefined) return `${name} has no kernel in it`;
  return { image: join(kept, "boot", image), modules: join(kept, "lib", "modules") };
}

function downloadInto(directory: string, name: string): string | undefined {
  const parts = join(directory, "parts");
  mkdirSync(parts);
  const got = spawnSync("apt-get", ["download", "-q", name], { cwd: parts, encoding: "utf8", timeout: 120_000 });
  const file = readdirSync(parts).find((each) => each.endsWith(".deb"));
  if (got.status !== 0 || file === undefined)
    return `needs Debian's ${name}, which cannot be downloaded here: ${got.stderr.trim()}`;
  const unpacked = spawnSync("dpkg", ["-x", join(parts, file), directory], { encoding: "utf8", timeout: 120_000 });
  rmSync(parts, { recursive: true });
  return unpacked.status === 0
    ? undefined
    : `needs Debian's ${name}, which cannot be unpacked: ${unpacked.stderr.trim()}`;
}

/** Another run may have been quicker: then theirs is as good. */
function rename(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}
