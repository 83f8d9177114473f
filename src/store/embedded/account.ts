import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { AppError } from "../../kernel/errors.ts";

/** Whom PostgreSQL runs as when we are root, since it refuses to be root itself. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** In order of preference. `initdb` looks its user up by number, so that an unused number without an entry will not do. */
const CANDIDATES = ["millwright", "postgres", "nobody", "daemon"] as const;

export function unprivilegedAccount(passwd: string): Account | undefined {
  const byName = new Map<string, Account>();
  for (const line of passwd.split("\n")) {
    const [name = "", , uid, gid] = line.split(":");
    const account = { name, uid: Number(uid), gid: Number(gid) };
    if (name !== "" && account.uid > 0 && Number.isInteger(account.gid)) byName.set(name, account);
  }
  for (const name of CANDIDATES) {
    const account = byName.get(name);
    if (account !== undefined) return account;
  }
  return undefined;
}

/**
 * The account to switch to, or undefined when we are an ordinary user and PostgreSQL runs as ourselves.
 *
 * An existing cluster keeps its owner: PostgreSQL refuses files of another user.
 */
export function accountForDatabase(clusterHome: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = statSync(clusterHome, { throwIfNoEntry: false });
  if (owner !== undefined && owner.uid !== 0) return { name: `#${owner.uid}`, uid: owner.uid, gid: owner.gid };
  const account = unprivilegedAccount(readFileSync("/etc/passwd", "utf8"));
  if (account !== undefined) return account;
  throw new AppError(
    "failed_precondition",
    `PostgreSQL does not run as root, and /etc/passwd has none of the users ${CANDIDATES.join(", ")} to run it as`,
    { next: "useradd --system millwright, or set MILLWRIGHT_DATABASE_URL to a PostgreSQL server" },
  );
}

/** The first directory on the way to `path`, itself included, that the account may not pass through. */
export function unreachableDirectory(path: string, account: Account): string | undefined {
  const parent = dirname(path);
  const above = parent === path ? undefined : unreachableDirectory(parent, account);
  if (above !== undefined) return above;
  const { mode, uid, gid } = statSync(path);
  const shift = uid === account.uid ? 6 : gid === account.gid ? 3 : 0;
  return ((mode >> shift) & 0o1) === 0o1 ? undefined : path;
}
