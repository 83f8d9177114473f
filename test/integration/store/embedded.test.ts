// @module-tag race
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { silentLog } from "../../../src/kernel/log.ts";
import { findBinaryPackage } from "../../../src/store/embedded/binaries.ts";
import { type EmbeddedOptions, startEmbedded } from "../../../src/store/embedded/embedded.ts";
import { findProcess, waitForExit } from "../../../src/store/embedded/process.ts";

const OWNER = join(import.meta.dirname, "..", "..", "support", "processes", "embedded-owner.ts");
const asRoot = process.getuid?.() === 0;
const NOBODY = 65534;

let scratch: string;
let dataDir: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "millwright-embedded-"));
  chmodSync(scratch, 0o755);
  dataDir = join(scratch, "data");
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

interface Answer {
  readonly url: string;
  readonly adopted: boolean;
  readonly pid: number;
  readonly refused?: string;
}

async function startOwner(
  options: SpawnOptions = {},
  directory = dataDir,
): Promise<{ child: ChildProcess; answer: Answer }> {
  const child = spawn(process.execPath, [OWNER, directory], { stdio: ["pipe", "pipe", "inherit"], ...options });
  for await (const line of createInterface({ input: child.stdout! })) return { child, answer: JSON.parse(line) };
  throw new Error("the owner ended without a word");
}

async function stopOwner(child: ChildProcess): Promise<void> {
  const exit = once(child, "exit");
  child.stdin?.end();
  await exit;
}

async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

async function start(options: Partial<EmbeddedOptions> = {}) {
  const embedded = await startEmbedded({ dataDir, log: silentLog, ...options });
  onTestFinished(() => embedded.stop());
  return embedded;
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query({ text, rowMode: "array" })).rows.flat();
  } finally {
    await client.end();
  }
}

const sessionOf = (pid: number) => Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[3]);

test("starts in an empty environment as UTF-8 on a private socket, without TCP, durable, in a session of its own", async () => {
  const { child, answer } = await startOwner({ env: {}, cwd: "/" });
  expect(answer).toMatchObject({ adopted: false });
  const settings =
    "SELECT current_setting(s) FROM unnest(ARRAY['server_encoding','listen_addresses','fsync','synchronous_commit','timezone']) s";
  expect(await query(answer.url, settings)).toEqual(["UTF8", "", "on", "on", "UTC"]);
  expect(await query(answer.url, "SELECT lower('ÄÖ'), 'ä' > 'z'")).toEqual(["äö", true]);
  expect(statSync(join(dataDir, "socket")).mode & 0o777).toBe(0o700);
  expect(sessionOf(answer.pid)).toBe(answer.pid);
  await stopOwner(child);
});

test("stops without leaving a process or a lock, and finds its data again", async () => {
  const first = await startOwner();
  await query(first.answer.url, "CREATE TABLE kept AS SELECT 7 AS n");
  await stopOwner(first.child);
  expect(findProcess(first.answer.pid)).toBeUndefined();
  expect(readdirSync(dataDir).sort()).toEqual(["postgres", "postgres-start.log", "socket"]);

  const second = await start();
  expect(second.adopted).toBe(false);
  expect(await query(second.url, "SELECT n FROM kept")).toEqual([7]);
});

test("the next owner takes over the running server after its owner was killed", async () => {
  const { child, answer } = await startOwner();
  await query(answer.url, "CREATE TABLE kept AS SELECT 7 AS n");
  await kill(child);

  const successor = await start();
  expect(successor).toMatchObject({ adopted: true, pid: answer.pid, url: answer.url });
  expect(await query(successor.url, "SELECT n FROM kept")).toEqual([7]);
  await successor.stop();
  expect(findProcess(answer.pid)).toBeUndefined();
});

test("recovers what was committed after the owner and the server were killed with work under way", async () => {
  const { child, answer } = await startOwner();
  const busy = new pg.Client({ connectionString: answer.url });
  busy.on("error", () => {}); // its server is about to be killed
  await busy.connect();
  await busy.query("CREATE TABLE kept AS SELECT 7 AS n");
  await busy.query("BEGIN");
  await busy.query("INSERT INTO kept VALUES (8)");
  // Long enough at work to outlive its server: it only looks up between statements of the loop's body.
  const working = busy
    .query("DO $$ BEGIN FOR i IN 1..3 LOOP PERFORM count(*) FROM generate_series(1, 3000000); END LOOP; END $$")
    .catch(() => {});
  await kill(child);
  const server = findProcess(answer.pid)!;
  process.kill(answer.pid, "SIGKILL");
  await waitForExit(server, 5_000);

  const successor = await start();
  expect(successor.adopted).toBe(false);
  expect(await query(successor.url, "SELECT n FROM kept")).toEqual([7]);
  await working;
});

test("waits for processes of the killed server that are still there, since two servers on one set of files would ruin them", async () => {
  const { child, answer } = await startOwner();
  const session = new pg.Client({ connectionString: answer.url });
  session.on("error", () => {}); // its server is about to be killed
  await session.connect();
  const { rows } = await session.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const leftover = rows[0]!.pid;
  process.kill(leftover, "SIGSTOP");
  await kill(child);
  process.kill(answer.pid, "SIGKILL");

  onTestFinished(() => {
    if (findProcess(leftover) !== undefined) process.kill(leftover, "SIGKILL");
  });

  const waiting = Promise.withResolvers<string>();
  const starting = start({ log: { ...silentLog, warn: (_fields, message) => waiting.resolve(message) } });
  const first = await Promise.race([waiting.promise, starting.then(() => "started at once", String)]);
  expect(first).toBe("waiting for processes of the killed database that are still there");
  process.kill(leftover, "SIGCONT");
  expect(await starting).toMatchObject({ adopted: false });
});

test("a server that dies under its owner is brought up again at the same place, and stops with it", async () => {
  const embedded = await start();
  await query(embedded.url, "CREATE TABLE kept AS SELECT 7 AS n");
  const { pid } = embedded;
  process.kill(pid, "SIGKILL");
  await expect
    .poll(() => query(embedded.url, "SELECT n FROM kept").catch(() => "down"), { timeout: 20_000 })
    .toEqual([7]);
  expect(embedded.pid).not.toBe(pid);
  await embedded.stop();
  expect(findProcess(embedded.pid)).toBeUndefined();
});

test("stopping does not wait for a server that is just being brought up again", async () => {
  const dying = Promise.withResolvers<void>();
  const embedded = await start({ log: { ...silentLog, error: () => dying.resolve() } });
  process.kill(embedded.pid, "SIGKILL");
  await dying.promise;
  await embedded.stop();
  expect(existsSync(join(dataDir, "owner.lock"))).toBe(false);
  expect(await start()).toMatchObject({ adopted: false });
});

test("starts although the old server's number now belongs to a stranger", async () => {
  const first = await start();
  await first.stop();
  const cluster = join(dataDir, "postgres", "data");
  writeFileSync(
    join(cluster, "postmaster.pid"),
    `${process.pid}\n${cluster}\n1700000000\n5432\n/nowhere\n\n0 0\nready   \n`,
  );
  expect(await start()).toMatchObject({ adopted: false });
});

test("starts again after it was killed while creating the database files", async () => {
  mkdirSync(join(dataDir, "postgres", "data.draft", "base"), { recursive: true });
  expect(await start()).toMatchObject({ adopted: false });
});

test("of several owners at once exactly one gets the directory, and the others are told who has it", async () => {
  const owners = await Promise.all(Array.from({ length: 4 }, () => startOwner()));
  const [winner, ...none] = owners.filter(({ answer }) => answer.refused === undefined);
  expect(none).toEqual([]);
  for (const { answer, child } of owners) {
    if (child !== winner?.child)
      expect(answer.refused).toBe(
        `the data directory ${dataDir} is in use by another Millwright, process ${winner?.child.pid}`,
      );
  }
  await stopOwner(winner!.child);
});

test("of several successors of a killed owner exactly one takes over", async () => {
  const { child, answer } = await startOwner();
  await kill(child);
  const successors = await Promise.all(Array.from({ length: 4 }, () => startOwner()));
  const winners = successors.filter((successor) => successor.answer.refused === undefined);
  expect(winners.map((winner) => winner.answer)).toEqual([{ url: answer.url, adopted: true, pid: answer.pid }]);
  await stopOwner(winners[0]!.child);
});

test("puts the socket into a short private directory when the data directory's path is too long for one, and removes it", async () => {
  dataDir = join(scratch, "a directory, with a rather long name ".repeat(3));
  const embedded = await start();
  expect(await query(embedded.url, "SELECT 1")).toEqual([1]);
  const { host } = embedded.pgConfig;
  expect(host.startsWith(dataDir)).toBe(false);
  expect(statSync(host).mode & 0o777).toBe(0o700);
  await embedded.stop();
  expect(existsSync(host)).toBe(false);
});

test("a path with blanks, commas and quotes is a path like any other", async () => {
  dataDir = join(scratch, `it's "a, b"`);
  const embedded = await start();
  expect(embedded.pgConfig.host).toBe(join(dataDir, "socket"));
  expect(await query(embedded.url, "SELECT 1")).toEqual([1]);
});

test("a server that cannot start says why, and leaves the directory free", async () => {
  await expect(start({ settings: { max_connections: "many" } })).rejects.toThrow(
    /ended while starting: .*max_connections/s,
  );
  expect(await start()).toMatchObject({ adopted: false });
});

test("a data directory that cannot be made is refused by name", async () => {
  writeFileSync(join(scratch, "file"), "");
  await expect(start({ dataDir: join(scratch, "file", "data") })).rejects.toThrow(
    `the data directory ${scratch}/file/data cannot be made or written`,
  );
});

test("makes the library links that a skipped install script left out", async () => {
  const from = copyOfBinaries(join(scratch, "package"), { links: false });
  const embedded = await start({ binaryPackage: from });
  expect(await query(embedded.url, "SELECT 1")).toEqual([1]);
  expect(existsSync(join(dataDir, "postgres-binaries"))).toBe(false);
});

function copyOfBinaries(root: string, { links }: { links: boolean }) {
  const { root: original, version } = findBinaryPackage();
  cpSync(join(original, "native"), join(root, "native"), { recursive: true, verbatimSymlinks: true });
  const list: { target: string }[] = JSON.parse(readFileSync(join(root, "native", "pg-symlinks.json"), "utf8"));
  if (!links) for (const { target } of list) rmSync(join(root, target), { force: true });
  return { root, version };
}

describe.runIf(asRoot)("as root", () => {
  test("the server runs as an unprivileged user", async () => {
    const embedded = await start();
    const status = readFileSync(`/proc/${embedded.pid}/status`, "utf8");
    expect(status).not.toMatch(/^[UG]id:.*\b0\b/m);
    expect(status).toMatch(/^Groups:\s*$/m);
  });

  test("copies binaries that its user cannot reach, once", async () => {
    const from = copyOfBinaries(join(scratch, "home", "package"), { links: false });
    chmodSync(join(scratch, "home"), 0o700);
    const first = await start({ binaryPackage: from });
    expect(await query(first.url, "SELECT 1")).toEqual([1]);
    const copies = join(dataDir, "postgres-binaries");
    const [copy = ""] = readdirSync(copies);
    const before = statSync(join(copies, copy)).ino;
    await first.stop();
    await start({ binaryPackage: from });
    expect(readdirSync(copies)).toEqual([copy]);
    expect(statSync(join(copies, copy)).ino).toBe(before);
  });

  test("refuses a data directory below a closed home, and names what is closed", async () => {
    dataDir = join(scratch, "home", "data");
    mkdirSync(dirname(dataDir), { mode: 0o700 });
    await expect(start()).rejects.toThrow(`who may not pass through ${dirname(dataDir)}`);
    expect(statSync(dirname(dataDir)).mode & 0o777).toBe(0o700);
  });

  test("an ordinary user owns the server itself, and root can go on with it as that user", async () => {
    chmodSync(scratch, 0o777);
    const { child, answer } = await startOwner({ uid: NOBODY, gid: NOBODY, env: {} });
    expect(answer.refused).toBeUndefined();
    expect(statSync(`/proc/${answer.pid}`).uid).toBe(NOBODY);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    await kill(child);
    const adopted = await start();
    expect(adopted).toMatchObject({ adopted: true, pid: answer.pid });
    await adopted.stop();
    const restarted = await start();
    expect(statSync(`/proc/${restarted.pid}`).uid).toBe(NOBODY);
  });
});
