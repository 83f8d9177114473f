import { type ConnectRouter, createRouterTransport } from "@connectrpc/connect";
import type { Sink, Terminal } from "../../../src/cli/client/session.ts";
import { runCli } from "../../../src/cli/run-cli.ts";

/** For tests: a terminal that keeps what is written to it. */
export interface FakeTerminal extends Terminal {
  /** Everything written to standard output so far. */
  readonly out: () => string;
  readonly err: () => string;
  /** Resolves as soon as the output holds the text. */
  readonly printed: (text: string) => Promise<void>;
  readonly interrupt: () => void;
}

export interface FakeTerminalOptions {
  readonly env?: Terminal["env"];
  /** A person at a screen, as opposed to a pipe. */
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  readonly stdin?: string;
  /** To whatever is asked, or by the question. */
  readonly answer?: string | ((question: string) => string);
  readonly now?: Date;
}

export function createFakeTerminal(options: FakeTerminalOptions = {}): FakeTerminal {
  const interruption = new AbortController();
  const waiting: { text: string; resolve: () => void }[] = [];
  const written = { out: "", err: "" };
  const isTTY = options.isTTY ?? false;
  const sink = (name: "out" | "err"): Sink => ({
    isTTY,
    columns: options.columns,
    rows: options.rows,
    write(text) {
      written[name] += text;
      for (const each of waiting) if (written.out.includes(each.text)) each.resolve();
    },
  });
  return {
    env: options.env ?? {},
    stdout: sink("out"),
    stderr: sink("err"),
    stdin: {
      isTTY,
      readAll: async () => options.stdin ?? "",
      async ask(question) {
        written.err += question;
        const { answer = "" } = options;
        return typeof answer === "string" ? answer : answer(question);
      },
    },
    now: () => options.now ?? new Date(),
    interrupted: interruption.signal,
    out: () => written.out,
    err: () => written.err,
    interrupt: () => interruption.abort(),
    printed: (text) =>
      written.out.includes(text) ? Promise.resolve() : new Promise((resolve) => waiting.push({ text, resolve })),
  };
}

export interface CliRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line against services that the test brings. */
export async function runAgainst(
  routes: (router: ConnectRouter) => void,
  line: string | readonly string[],
  options: FakeTerminalOptions & { readonly terminal?: FakeTerminal } = {},
): Promise<CliRun> {
  const terminal = options.terminal ?? createFakeTerminal(options);
  const args = typeof line === "string" ? line.split(" ").filter((word) => word !== "") : line;
  const code = await runCli(args, { version: "1.2.3", terminal, transport: createRouterTransport(routes) });
  return { code, out: terminal.out(), err: terminal.err() };
}

/** Keeps a call and answers with nothing. */
export function noted<T>(calls: T[], call: T): Record<string, never> {
  calls.push(call);
  return {};
}
