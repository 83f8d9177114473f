import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory with what is in the packages. */
export interface UnpackedPackages {
  readonly directory: string;
}

/**
 * Packages of Debian, unpacked and not installed: nothing of this machine is changed by them. Kept between runs under the given name.
 * A text says why they cannot be had.
 */
export function unpackDebianPackages(kept: string, packages: readonly string[]): UnpackedPackages | string {
  const directory = join(tmpdir(), `millwright-test-${kept}`);
  if (existsSync(directory)) return { directory };
  const unpacked = mkdtempSync(join(tmpdir(), "millwright-test-packages-"));
  try {
    const failure = downloadInto(unpacked, packages);
    if (failure !== undefined) return failure;
    rename(unpacked, directory);
  } finally {
    rmSync(unpacked, { recursive: true, force: true });
  }
  return { directory };
}

function downloadInto(directory: string, packages: readonly string[]): string | undefined {
  const parts = join(directory, "parts");
  mkdirSync(parts);
  const called = packages.join(", ");
  const got = spawnSync("apt-get", ["download", "-q", ...packages], { cwd: parts, encoding: "utf8", timeout: 120_000 });
  const files = readdirSync(parts).filter((each) => each.endsWith(".deb"));
  if (got.status !== 0 || files.length < packages.length)
    return `needs Debian's ${called}, which cannot be downloaded here: ${(got.stderr ?? String(got.error)).trim()}`;
  for (const file of files) {
    const unpacked = spawnSync("dpkg", ["-x", join(parts, file), directory], { encoding: "utf8", timeout: 120_000 });
    if (unpacked.status !== 0) return `needs Debian's ${file}, which cannot be unpacked: ${unpacked.stderr.trim()}`;
  }
  rmSync(parts, { recursive: true });
  return undefined;
}

/** Another run may have been quicker: then theirs is as good. */
function rename(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}
