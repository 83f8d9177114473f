import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { discoverServer } from "../../client/discover-server.ts";
import { oneLine, UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { type DnsmasqOptions, writeDnsmasq } from "../../netboot/dnsmasq.ts";
import { makeEnvironment } from "../../netboot/environment.ts";
import { moduleName, readModule, USUAL_MODULES } from "../../netboot/kernel-modules.ts";
import { printLine } from "../../terminal/printing.ts";

export interface DnsmasqCommandOptions extends DnsmasqOptions {
  readonly bootUrl?: string;
  readonly out?: string;
}

export async function writeDnsmasqFile(session: Session, options: DnsmasqCommandOptions): Promise<undefined> {
  const { terminal, globals } = session;
  const server = (options.bootUrl ?? (await bootServerOf(session))).replace(/\/+$/, "");
  const text = writeDnsmasq(options, server);
  if (options.out === undefined) {
    terminal.stdout.write(text);
    return undefined;
  }
  writeWhole(options.out, "--out", text);
  if (globals.output === "table")
    printLine(terminal.stdout, `${options.out}: check it with dnsmasq --test -C ${options.out}`);
  else printLine(terminal.stdout, `${JSON.stringify({ file: options.out, server })}`);
  return undefined;
}

const ASK_FOR_MS = 2_000;

/** A server that gives out no boot scripts where people call it has a listener for them, on a network that people are not on. */
async function bootServerOf(session: Session): Promise<string> {
  const server = serverOf(session);
  const answer = await fetch(`${server}/api/v1/boot.ipxe`, { signal: AbortSignal.timeout(ASK_FOR_MS) }).catch(
    () => undefined,
  );
  await answer?.body?.cancel();
  // Something else on the way may not know the path either.
  if (answer?.status !== 404 || !answer.headers.has("x-request-id")) return server;
  throw new UsageError(
    `--boot-url is missing: ${server} gives out no boot scripts, they have a listener of their own (boot.listen)`,
    "give the address of that listener: --boot-url http://10.0.0.1:8090",
  );
}

const serverOf = ({ globals, terminal: { env } }: Session): string =>
  discoverServer(globals, {
    env,
    readFile: (path) => {
      try {
        return readFileSync(path, "utf8");
      } catch {
        return undefined;
      }
    },
    user: () => userInfo(),
  }).url;

export interface EnvironmentOptions {
  readonly kernel: string;
  readonly busybox: string;
  readonly modules?: readonly string[];
  readonly module?: readonly string[];
  readonly out: string;
}

const AGENT = join(import.meta.dirname, "..", "..", "..", "..", "netboot", "agent");

export async function writeEnvironment(
  { terminal, globals }: Session,
  options: EnvironmentOptions,
): Promise<undefined> {
  const kernel = read(options.kernel, "--kernel");
  const files = moduleFiles(options.modules ?? []);
  for (const name of options.module ?? [])
    if (!files.has(moduleName(name)))
      throw new UsageError(`--module: there is no module ${name} in the directories of --modules`);
  const { initrd, modules } = makeEnvironment({
    kernel,
    busybox: read(options.busybox, "--busybox"),
    scripts: new Map(readdirSync(AGENT).map((name) => [name, readFileSync(join(AGENT, name))])),
    wanted: (options.module ?? USUAL_MODULES).map(moduleName),
    findModule: (name) => {
      const path = files.get(name);
      return path === undefined ? undefined : readModule(path, unpacked(path));
    },
  });
  mkdirSync(options.out, { recursive: true });
  const made = [
    { name: "vmlinuz", data: kernel },
    { name: "initrd", data: initrd },
  ].map(({ name, data }) => {
    const path = join(options.out, name);
    writeWhole(path, "--out", data);
    return { path, bytes: data.length, digest: `sha256:${createHash("sha256").update(data).digest("hex")}` };
  });
  if (globals.output !== "table") {
    printLine(terminal.stdout, `${JSON.stringify({ files: made, modules })}`);
    return undefined;
  }
  for (const { path, bytes, digest } of made) printLine(terminal.stdout, `${path}  ${bytes} bytes  ${digest}`);
  printLine(terminal.stdout, `drivers: ${modules.join(", ") || "those that the kernel has built in"}`);
  terminal.stderr.write(
    "Next: serve them (install.files_dir), name them in workflows of method image, and in install.erase.kernel and install.erase.initrd.\n",
  );
  return undefined;
}

/** Where each module lies; of one that is there twice, the first. */
function moduleFiles(directories: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const directory of directories) {
    let files: readonly string[];
    try {
      files = readdirSync(directory, { recursive: true, encoding: "utf8" });
    } catch (error) {
      throw new UsageError(`--modules: ${reason(error)}`);
    }
    for (const file of files.filter((name) => /\.ko(\.(xz|zst|gz))?$/.test(name)))
      if (!found.has(moduleName(file))) found.set(moduleName(file), join(directory, file));
  }
  return found;
}

/** As busybox loads it: unpacked. */
function unpacked(path: string): Buffer {
  const data = read(path, "--modules");
  if (path.endsWith(".gz")) return gunzipSync(data);
  if (path.endsWith(".zst")) return zstdDecompressSync(data);
  if (path.endsWith(".xz")) return unpackXz(path);
  return data;
}

const MOST_BYTES = 256 * 1024 * 1024;

/** Node cannot; the program that made it can. */
function unpackXz(path: string): Buffer {
  const { status, stdout, error } = spawnSync("xz", ["--decompress", "--stdout", path], { maxBuffer: MOST_BYTES });
  if (status === 0) return stdout;
  const why = error === undefined ? `xz ended with ${status}` : reason(error);
  throw new UsageError(`--modules: ${path} could not be unpacked (${why})`, "is the program xz installed?");
}

function read(path: string, option: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (missing(error)) throw new UsageError(`${option}: ${path} does not exist`);
    throw new UsageError(`${option}: ${reason(error)}`);
  }
}

/** At once or not at all: a machine may be booting from it. */
function writeWhole(path: string, option: string, data: string | Uint8Array): void {
  const temporary = `${path}.${process.pid}.new`;
  try {
    writeFileSync(temporary, data);
    renameSync(temporary, path);
  } catch (error) {
    throw new UsageError(`${option}: ${reason(error)}`);
  }
}

const missing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT";
const reason = (error: unknown): string => oneLine(error instanceof Error ? error.message : String(error));
