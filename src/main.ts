import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type Build, readBuild } from "./config/build.ts";
import { warnOfStricterDefaults } from "./config/stricter-defaults.ts";
import { checkFiles, type LoadedConfig, loadConfig, type Profile, printConfig } from "./config.ts";
import { AppError } from "./kernel/errors.ts";
import { type Log, silentLog } from "./kernel/log.ts";
import { awaitDatabase } from "./store/postgres/await-database.ts";
import { migrate, planMigrations } from "./store/postgres/migrate.ts";
import { createLog, LogLevel } from "./telemetry/log.ts";
import { startDev } from "./wiring/dev/dev.ts";
import { SIMULATOR, simulatorFlags, takeSimulatorFlags } from "./wiring/dev/simulator-process.ts";
import { checkFileLimit } from "./wiring/process/file-limit.ts";
import { reloadConfig } from "./wiring/process/reload-config.ts";
import { describeFailure, wantsStack } from "./wiring/process/start-errors.ts";
import { loadRunbooks } from "./wiring/runbook-files.ts";
import { type Server, startServer } from "./wiring/server.ts";
import { openTlsFiles } from "./wiring/surfaces/tls-files.ts";

const ROOT = join(import.meta.dirname, "..");
const USAGE = 2;
const FAILED = 1;

const build = readBuild(ROOT);
const { version } = build;

const COMMANDS: { readonly [name: string]: (argv: readonly string[]) => Promise<number> } = {
  dev(argv) {
    const { own, rest } = takeSimulatorFlags(argv);
    return runUntilStopped("dev", rest, async (options) => {
      const dev = await startDev({ ...options, simulatorFlags: own });
      process.stdout.write(welcome(dev, options.givenDataDir));
      return dev;
    });
  },
  serve(argv) {
    return runUntilStopped("serve", argv.map(spellOut), async (options) => {
      checkFileLimit(options.config, options.log);
      const server = await startServer(options);
      process.stdout.write(`Millwright ${version} is ready: ${listening(server)}\n`);
      return server;
    });
  },
  sim: runSimulator,
  config: checkConfig,
  migrate: migrateDatabase,
};

function listening({ httpUrl, grpcAddress, bootUrl, bmcUrl }: Server): string {
  const apart = [
    ...(bootUrl === undefined ? [] : [`${bootUrl} (machines that boot)`]),
    ...(bmcUrl === undefined ? [] : [`${bmcUrl} (BMCs)`]),
  ];
  return [`${httpUrl} (HTTP)`, `${grpcAddress} (gRPC)`, ...apart].join(", ");
}

/** The short form of a setting. */
const spellOut = (flag: string): string =>
  flag === "--cancel-runs" ? "--shutdown-runs=cancel" : flag.replace(/^--restored(?==|$)/, "--database-restored");

const STOP_SIGNALS = { serve: ["SIGINT", "SIGTERM"], dev: ["SIGINT", "SIGTERM", "SIGHUP"] } as const;

/** One Ctrl-C may arrive twice: from the terminal, and passed on by npm. */
const SAME_KEY_PRESS_MS = 2_000;

type Running = Pick<Server, "reload" | "stop" | "abandon">;

/** SIGINT and SIGTERM stop in good order; a later second one stops waiting, and still leaves no process behind. */
async function runUntilStopped(
  profile: Profile,
  argv: readonly string[],
  start: (options: {
    config: LoadedConfig["config"];
    /** Undefined: the usual one. */
    givenDataDir: string | undefined;
    log: Log;
    version: string;
    build: Build;
    setLogLevel: (level: string | null) => void;
    signal: AbortSignal;
  }) => Promise<Running>,
): Promise<number> {
  const { config, settings, warnings } = loadConfig({ env: process.env, argv, profile });
  const isUsual = settings.some(({ key, source }) => key === "data_dir" && source === "default");
  const log = createLog(config.log);
  const logLevel = new LogLevel(log, config.log.level);
  for (const warning of warnings) log.warn({}, warning);
  const stopping = new AbortController();
  let running: Running | undefined;
  let firstAt = 0;
  // The terminal of a development server is closed; a server in production is told to read its files again.
  if (profile === "serve")
    process.on("SIGHUP", () => {
      log.info({ signal: "SIGHUP" }, "reading the configuration, certificates and scripts again");
      const reloaded = reloadConfig({ argv, profile, settings }, log);
      if (reloaded) logLevel.configure(reloaded.log.level);
      running?.reload();
    });
  for (const name of STOP_SIGNALS[profile]) {
    process.on(name, () => {
      if (!stopping.signal.aborted) {
        firstAt = performance.now();
        log.info({ signal: name }, "stopping");
        stopping.abort();
      } else if (performance.now() - firstAt > SAME_KEY_PRESS_MS) {
        running?.abandon();
        process.exit(FAILED);
      }
    });
  }
  running = await start({
    config,
    givenDataDir: isUsual ? undefined : config.dataDir,
    log,
    version,
    build,
    setLogLevel: logLevel.set,
    signal: stopping.signal,
  });
  if (!stopping.signal.aborted) await once(stopping.signal, "abort");
  await running.stop();
  log.info({}, "stopped");
  return 0;
}

/** The command line looks for the server in the data directory: elsewhere than in its usual place, it must be told. */
const tellDataDir = (dataDir: string): string =>
  `    export MILLWRIGHT_DATA_DIR='${dataDir.replaceAll("'", `'\\''`)}'\n`;

function welcome(dev: Awaited<ReturnType<typeof startDev>>, dataDir: string | undefined): string {
  return `
  Millwright ${version} is up, with a simulated datacentre of ${dev.expectedShelves} power shelves, ${dev.switches} switches and ${dev.machines} machines.

    console            ${dev.consoleUrl}
    API (JSON)         ${dev.httpUrl}
    API (gRPC)         ${dev.grpcAddress}
    REST reference     ${dev.httpUrl}/api/v1/docs
    simulator control  ${dev.simulatorUrl}
    admin token        ${dev.tokenPath}

  In a second terminal:

${dataDir === undefined ? "" : tellDataDir(dataDir)}    bin/millwright machine list
    bin/millwright run start --machine m-rack1-03 --type REPAVE --wait
    bin/millwright power-shelf list
    bin/millwright power-shelf maintenance power-off --power-shelf-id <ID> --reference https://tracker/MAINT-123
    bin/millwright power-shelf show <ID>
    bin/millwright power-shelf history <ID>
    bin/millwright node list                                   # a machine that nobody knows has booted from the network
    bin/millwright node approve m-02005e100001 --workflow simulated

  Ctrl-C stops everything; the next start goes on where this one ended.

`;
}

/** The simulator alone, in the foreground. */
async function runSimulator(argv: readonly string[]): Promise<number> {
  const { own, rest } = takeSimulatorFlags(argv);
  const { config } = loadConfig({ env: process.env, argv: rest, profile: "dev" });
  const child = spawn(process.execPath, [SIMULATOR, ...simulatorFlags(config), ...own], {
    stdio: "inherit",
  });
  for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => child.kill(name));
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? FAILED;
}

/** What would keep the server from starting, as far as it can be known without starting it. */
async function checkConfig(argv: readonly string[]): Promise<number> {
  const [action, ...given] = argv;
  if (action !== "check")
    throw new AppError("invalid_argument", "usage: millwright config check [--profile serve|dev] [flags]");
  const { profile, rest } = takeProfile(given);
  const loaded = loadConfig({ env: process.env, argv: rest.map(spellOut), profile });
  process.stdout.write(`${printConfig(loaded)}\n`);
  const { problems, warnings } = checkFiles(loaded);
  for (const warning of [...warnings, ...warnOfStricterDefaults(loaded)]) process.stdout.write(`warning: ${warning}\n`);
  if (problems.length > 0) throw new AppError("invalid_argument", problems.join("\n"));
  loadRunbooks(loaded.config.scripts.directory);
  openTlsFiles(loaded.config, silentLog);
  process.stdout.write("ok\n");
  return 0;
}

/** What an upgrade would do to the database, or the same done: before a replica of the new version starts, and beside those of the old. */
async function migrateDatabase(argv: readonly string[]): Promise<number> {
  const [action, ...flags] = argv;
  if (action !== "plan" && action !== "apply")
    throw new AppError("invalid_argument", "usage: millwright migrate plan|apply [flags]");
  const { config } = loadConfig({ env: process.env, argv: flags, profile: "serve" });
  if (config.database.url === null)
    throw new AppError(
      "invalid_argument",
      "database.url: is required; an embedded database is migrated by its own server at its start",
    );
  const pending = await planMigrations(config.database.url);
  for (const { id, sql } of pending) process.stdout.write(`${id}: ${firstLineOf(sql)}\n`);
  if (pending.length === 0) process.stdout.write("the database has every migration of this version\n");
  else if (action === "apply") {
    const log = createLog(config.log);
    await awaitDatabase(config.database.url, { log });
    const applied = await migrate(config.database.url, { log });
    process.stdout.write(`applied ${applied.length} migrations\n`);
  }
  return 0;
}

const firstLineOf = (sql: string): string => /^--\s*(.+)$/m.exec(sql)?.[1] ?? "";

/** Whose defaults hold; it is no setting, so it is taken out of the flags. */
function takeProfile(argv: readonly string[]): { profile: Profile; rest: string[] } {
  const words = argv.flatMap((word) => (word.startsWith("--profile=") ? ["--profile", word.slice(10)] : [word]));
  const at = words.indexOf("--profile");
  if (at === -1) return { profile: "serve", rest: words };
  const profile = words[at + 1];
  if (profile !== "serve" && profile !== "dev")
    throw new AppError("invalid_argument", `--profile: must be serve or dev`);
  return { profile, rest: words.toSpliced(at, 2) };
}

const [, , name = "", ...argv] = process.argv;
try {
  const command = COMMANDS[name];
  if (!command)
    throw new AppError(
      "invalid_argument",
      `unknown command ${JSON.stringify(name)}: one of ${Object.keys(COMMANDS).join(", ")}`,
    );
  process.exitCode = await command(argv);
} catch (error) {
  process.stderr.write(describeFailure(error, { isConfigCheck: name === "config", withStack: wantsStack(argv) }));
  process.exitCode = error instanceof AppError && error.kind === "invalid_argument" ? USAGE : FAILED;
}
