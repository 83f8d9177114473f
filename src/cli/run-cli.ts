import type { Transport } from "@connectrpc/connect";
import { CommanderError } from "commander";
import { discoverServer, type Endpoint, surroundings } from "./client/discover-server.ts";
import { describeFailure, EXIT } from "./client/errors.ts";
import type { GlobalOptions, Session, Sink, Terminal } from "./client/session.ts";
import { createProgram } from "./program.ts";
import { printable, printableOutput } from "./terminal/printable.ts";
import { paint } from "./terminal/table.ts";

export interface CliOptions {
  readonly version: string;
  readonly terminal: Terminal;
  /** Instead of a server that is looked for; for tests. */
  readonly transport?: Transport;
}

/** Runs one command line and says with which code to exit. */
export async function runCli(args: readonly string[], options: CliOptions): Promise<number> {
  const { version, transport } = options;
  const terminal = guarded(options.terminal);
  let exitCode: number = EXIT.ok;
  let server: Endpoint | undefined;
  const program = createProgram({
    version,
    stdout: terminal.stdout,
    stderr: terminal.stderr,
    run: (root) => async (body) => {
      const globals = root.opts<GlobalOptions>();
      const findServer = () => {
        server ??= discoverServer(globals, surroundings(terminal.env));
        return server;
      };
      exitCode = (await body(createSession({ terminal, globals, transport, findServer }))) ?? EXIT.ok;
    },
  });
  try {
    await program.parseAsync([...args], { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has said itself what is wrong; it throws for help and version too.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (terminal.interrupted.aborted) return EXIT.interrupted;
    const failure = await describeFailure(error, server?.url);
    const color = usesColor(program.opts<GlobalOptions>(), terminal, terminal.stderr);
    terminal.stderr.write(`${paint("error:", "bad", color)} ${printable(failure.message)}\n`);
    if (failure.hint !== undefined) terminal.stderr.write(`hint: ${printable(failure.hint)}\n`);
    return failure.exitCode;
  }
}

/** Nothing that came from outside steers the terminal, whichever printer it went through. */
function guarded(terminal: Terminal): Terminal {
  const { stdin, interrupted } = terminal;
  return {
    env: terminal.env,
    stdout: guardedSink(terminal.stdout),
    stderr: guardedSink(terminal.stderr),
    stdin: {
      isTTY: stdin.isTTY,
      readAll: () => stdin.readAll(),
      ask: (question, how) => stdin.ask(printable(question), how),
    },
    now: () => terminal.now(),
    interrupted,
  };
}

const guardedSink = (sink: Sink): Sink => ({
  write: (text) => sink.write(printableOutput(text, sink.isTTY)),
  isTTY: sink.isTTY,
  get columns() {
    return sink.columns;
  },
  get rows() {
    return sink.rows;
  },
});

interface SessionParts {
  readonly terminal: Terminal;
  readonly globals: GlobalOptions;
  readonly transport: Transport | undefined;
  readonly findServer: () => Endpoint;
}

function createSession({ terminal, globals, transport, findServer }: SessionParts): Session {
  const transports = new Map<string, Promise<Transport>>();
  const open = async (kind: "unary" | "streaming"): Promise<Transport> => {
    if (transport) return transport;
    const { openTransport } = await import("./client/connect.ts");
    const { caFile, clientCert, clientKey } = globals;
    return openTransport({ ...findServer(), caFile, clientCert, clientKey }, kind);
  };
  return {
    terminal,
    globals,
    signal: terminal.interrupted,
    style: () => ({
      format: globals.output,
      color: usesColor(globals, terminal, terminal.stdout),
      width: terminal.stdout.isTTY ? terminal.stdout.columns : undefined,
      now: terminal.now(),
    }),
    async client(service, options) {
      const kind = options?.streaming ? "streaming" : "unary";
      const opened = transports.get(kind) ?? open(kind);
      transports.set(kind, opened);
      const { createClient } = await import("@connectrpc/connect");
      return createClient(service, await opened);
    },
    async rest(call) {
      const { callRest } = await import("./client/rest.ts");
      const { caFile, clientCert, clientKey } = globals;
      return callRest({ ...findServer(), caFile, clientCert, clientKey }, call, terminal.interrupted);
    },
  };
}

function usesColor(globals: Partial<GlobalOptions>, { env }: Terminal, sink: { readonly isTTY: boolean }): boolean {
  return sink.isTTY && globals.color !== false && !env.NO_COLOR && env.TERM !== "dumb";
}
