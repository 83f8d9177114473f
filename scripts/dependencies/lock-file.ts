import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** One package of `package-lock.json`, as far as we read it. */
export interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  readonly optional?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export interface Manifest extends Pick<LockedPackage, "dependencies" | "optionalDependencies"> {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly description: string;
  readonly allowScripts?: Readonly<Record<string, boolean>>;
}

export interface LockFile {
  /** By their place, such as `node_modules/pg`; ours is not among them. */
  readonly packages: ReadonlyMap<string, LockedPackage>;
}

const BELOW = "node_modules/";

/** `node_modules/a/node_modules/@b/c` is the package `@b/c`. */
export const nameAt = (place: string): string => place.slice(place.lastIndexOf(BELOW) + BELOW.length);

export async function readLockFile(folder: string): Promise<LockFile> {
  const text = await readFile(join(folder, "package-lock.json"), "utf8");
  const { packages } = JSON.parse(text) as { packages: Record<string, LockedPackage> };
  return { packages: new Map(Object.entries(packages).filter(([place]) => place !== "")) };
}

export const readManifest = async (folder: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Manifest;
