import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readMigrations } from "../../src/store/postgres/migrate.ts";
import { root } from "../run-tool.ts";

interface Landed {
  /** Numbers of which databases may know a migration that never landed: nothing else may have them. */
  readonly retired: readonly string[];
  /** The digest of each, by its number and name. */
  readonly landed: Readonly<Record<string, string>>;
}

const MIGRATIONS = join(root, "migrations");
const fileIn = (folder: string): string => join(folder, "landed.json");
const numberOf = (id: string): string => id.slice(0, 4);

async function readLanded(folder: string): Promise<Landed> {
  return JSON.parse(await readFile(fileIn(folder), "utf8")) as Landed;
}

/**
 * What a database of the landed version could not be migrated with: a landed migration that is gone, has another number or says
 * something else, a new one that comes before it, and a number that must not be used again. `npm run contract:land` renews the list; additions break nobody.
 */
export async function findRewrittenMigrations(folder: string = MIGRATIONS): Promise<readonly string[]> {
  const { retired, landed } = await readLanded(folder);
  const present = await readMigrations(folder);
  const digests = new Map(present.map(({ id, checksum }) => [id, checksum]));
  const rewritten = Object.entries(landed).flatMap(([id, digest]) => {
    const now = digests.get(id);
    if (now === undefined) return [`migrations/${id}.sql has landed, and is gone or has another name; restore it`];
    return now === digest
      ? []
      : [`migrations/${id}.sql has landed and was changed; put the change into a new migration`];
  });
  const reused = present
    .filter(({ id }) => retired.includes(numberOf(id)))
    .map(({ id }) => `migrations/${id}.sql: number ${numberOf(id)} must never be used; take a higher one`);
  const newest = Object.keys(landed).toSorted().at(-1) ?? "";
  const late = present
    .filter(({ id }) => landed[id] === undefined && id < newest && !retired.includes(numberOf(id)))
    .map(
      ({ id }) =>
        `migrations/${id}.sql comes before ${newest}, which has landed: databases refuse it; take a higher number`,
    );
  return [...rewritten, ...reused, ...late];
}

/** From here on an earlier server may run beside the next one. */
const FIRST_THAT_ONLY_ADDS = "0100";
const TAKES_AWAY =
  /\b(drop\s+(table|column|view|type)|rename\s+(to|column)|alter\s+column\s+\w+\s+(set\s+not\s+null|(set\s+data\s+)?type))\b/i;

/**
 * A server of the version before goes on while the next one has migrated, and may be restarted then: what it reads and writes must stay. What is
 * taken away a version later says so, and why, since it ends the servers before.
 */
export async function findTakingMigrations(folder: string = MIGRATIONS): Promise<readonly string[]> {
  return (await readMigrations(folder)).flatMap(({ id, sql, endsEarlier }) => {
    if (numberOf(id) < FIRST_THAT_ONLY_ADDS || endsEarlier) return [];
    const [found] = TAKES_AWAY.exec(sql.replaceAll(/--.*$/gm, "")) ?? [];
    if (found === undefined) return [];
    return [
      `migrations/${id}.sql: "${found}" breaks servers of the version before; add only, or say "-- Ends earlier servers: <why>" at its top`,
    ];
  });
}

/** The migrations that there are have landed. */
export async function landMigrations(folder: string = MIGRATIONS): Promise<void> {
  const { retired } = await readLanded(folder);
  const landed = Object.fromEntries((await readMigrations(folder)).map(({ id, checksum }) => [id, checksum]));
  const listed = JSON.stringify(landed, null, 2).replaceAll("\n", "\n  ");
  const text = `{\n  "retired": [${retired.map((number) => `"${number}"`).join(", ")}],\n  "landed": ${listed}\n}\n`;
  await writeFile(fileIn(folder), text); // as the formatter has it
}
