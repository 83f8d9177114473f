import { type LockedPackage, type LockFile, type Manifest, nameAt } from "./lock-file.ts";

/** Licences that let others use, change and ship what we make under ours, with a notice at most. */
const ALLOWED: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "ISC",
  "MIT",
  "Unlicense",
]);

/** Weaker terms are fine for a tool of our own that we do not ship. */
const ALLOWED_IN_DEVELOPMENT: ReadonlySet<string> = new Set([...ALLOWED, "MPL-2.0"]);

/** Packages whose manifest names no licence, with the one that their LICENSE file holds. */
const READ_BY_A_PERSON: Readonly<Record<string, string>> = { buildcheck: "MIT", "cpu-features": "MIT", ssh2: "MIT" };

/**
 * What is wrong with what we depend on: a licence that we must not ship, bytes that nothing vouches for, a package from another
 * place than the registry, and a script that would run at install without anyone having decided so.
 */
export function findBadDependencies(
  { packages }: Pick<LockFile, "packages">,
  { allowScripts = {} }: Manifest,
): readonly string[] {
  const faults = [...packages].flatMap(([place, locked]) => judge(nameAt(place), locked, allowScripts));
  const names = new Set([...packages.keys()].map(nameAt));
  const strangers = Object.keys(allowScripts).filter((name) => !names.has(name));
  return [...faults, ...strangers.map((name) => `package.json: allowScripts names ${name}, which nothing depends on`)];
}

function judge(name: string, locked: LockedPackage, scripts: Readonly<Record<string, boolean>>): readonly string[] {
  const faults: string[] = [];
  const license = locked.license ?? READ_BY_A_PERSON[name];
  if (license === undefined) faults.push("names no licence; read its LICENSE file and add it to READ_BY_A_PERSON");
  else if (!isAllowed(license, locked.dev === true ? ALLOWED_IN_DEVELOPMENT : ALLOWED))
    faults.push(`has the licence ${license}, which is not on the list of allowed ones`);
  if (locked.integrity === undefined) faults.push("has no integrity hash; remove it and run `npm install` again");
  else if (!/^sha512-/.test(locked.integrity))
    faults.push(`is vouched for by ${locked.integrity.split("-", 1)[0]} alone`);
  if (locked.resolved !== undefined)
    faults.push("names where it comes from; `omit-lockfile-registry-resolved` keeps registries out of the lock file");
  if (locked.hasInstallScript === true && scripts[name] === undefined)
    faults.push("runs a script at install; decide in `allowScripts` of package.json whether it may");
  return faults.map((fault) => `${name}@${locked.version ?? "?"} ${fault}`);
}

/** An expression of SPDX: one of what OR joins is enough, and all of what AND joins are needed. */
export function isAllowed(expression: string, allowed: ReadonlySet<string>): boolean {
  const words = expression.match(/\(|\)|[^\s()]+/g) ?? [];
  let at = 0;
  const either = (): boolean => {
    let holds = both();
    while (words[at] === "OR") {
      at += 1;
      holds = both() || holds;
    }
    return holds;
  };
  const both = (): boolean => {
    let holds = one();
    while (words[at] === "AND") {
      at += 1;
      holds = one() && holds;
    }
    return holds;
  };
  const one = (): boolean => {
    const word = words[at++];
    if (word !== "(") return word !== undefined && allowed.has(word);
    const holds = either();
    return words[at++] === ")" && holds;
  };
  const holds = either();
  return at === words.length && holds;
}
