import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** One package of `package-lock.json`, as far as we read it. */
export interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly license?: string;
  readonly dev?: boolean;
  /** A tool, which something that we ship would take beside it if it were there. */
  readonly devOptional?: boolean;
  readonly hasInstallScript?: boolean;
  readonly optional?: boolean;
  /** A place that stands for one of our own folders. */
  readonly link?: boolean;
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
  /** By their place, such as `node_modules/pg`; ours are not among them. */
  readonly packages: ReadonlyMap<string, LockedPackage>;
  /** Our own, beside the one at the root: each folder below it that has a `package.json`. */
  readonly workspaces: readonly LockedPackage[];
}

const BELOW = "node_modules/";

/** `node_modules/a/node_modules/@b/c` is the package `@b/c`. */
export const nameAt = (place: string): string => place.slice(place.lastIndexOf(BELOW) + BELOW.length);

export async function readLockFile(folder: string): Promise<LockFile> {
  const text = await readFile(join(folder, "package-lock.json"), "utf8");
  const { packages } = JSON.parse(text) as { packages: Record<string, LockedPackage> };
  const all = Object.entries(packages).filter(([place, { link }]) => place !== "" && link !== true);
  const [foreign, own] = [true, false].map((isForeign) => all.filter(([place]) => place.includes(BELOW) === isForeign));
  return { packages: new Map(foreign), workspaces: (own ?? []).map(([, workspace]) => workspace) };
}

export const readManifest = async (folder: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Manifest;
