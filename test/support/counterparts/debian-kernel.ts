import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { unpackDebianPackages } from "./debian-packages.ts";

export interface DebianKernel {
  readonly image: string;
  readonly modules: string;
}

const PACKAGE = "linux-image-cloud-amd64";

/** Debian's kernel for virtual machines. A text says why there is none. */
export function findDebianKernel(): DebianKernel | string {
  const { stdout } = spawnSync("apt-cache", ["depends", PACKAGE], { encoding: "utf8" });
  const name = /Depends: (linux-image-\S+)/.exec(stdout ?? "")?.[1];
  if (name === undefined) return `needs Debian's ${PACKAGE}, which apt does not know here`;
  const found = unpackDebianPackages(name, [name]);
  if (typeof found === "string") return found;
  const { directory } = found;
  const image = readdirSync(join(directory, "boot")).find((file) => file.startsWith("vmlinuz-"));
  if (image === undefined) return `${name} has no kernel in it`;
  return { image: join(directory, "boot", image), modules: join(directory, "lib", "modules") };
}
