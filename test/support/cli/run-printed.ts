import { execFileSync } from "node:child_process";
import type { Transport } from "@connectrpc/connect";
import { runCli } from "../../../src/cli/run-cli.ts";
import { createFakeTerminal } from "./fake-terminal.ts";

/** Where a command of the tests goes to: a transport, or a server and a token in the environment. */
export interface CliServer {
  readonly transport?: Transport;
  readonly env?: Readonly<Record<string, string>>;
}

/** What somebody at the terminal types, or pipes in. */
export interface Typed {
  /** What is asked for, by the question. */
  readonly answers?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** A line as the shell splits it, by the shell itself: what stands for something that nobody knows yet, such as <name>, fails there. */
const splitByShell = (line: string): readonly string[] =>
  execFileSync("sh", ["-c", `printf '%s\\0' ${line}`], { encoding: "utf8" })
    .split("\0")
    .slice(0, -1);

/** Runs a line that Millwright printed, as it is, through the command line. Answers with what it prints. */
export async function runPrinted(
  { transport, env = {} }: CliServer,
  line: string,
  { answers = {}, stdin }: Typed = {},
): Promise<string> {
  const [program, ...args] = splitByShell(line);
  if (program !== "millwright") throw new Error(`${JSON.stringify(line)} is no command of millwright`);
  const terminal = createFakeTerminal({
    env,
    isTTY: stdin === undefined,
    ...(stdin !== undefined && { stdin }),
    answer(question) {
      const answer = answers[question.trim()];
      if (answer === undefined) throw new Error(`${line} asks ${JSON.stringify(question)}, which nobody answers`);
      return answer;
    },
  });
  const code = await runCli(args, { version: "1", terminal, ...(transport && { transport }) });
  if (code !== 0) throw new Error(`${line} ended with exit code ${code}: ${terminal.err()}`);
  return terminal.out();
}

/** What `fleet show` prints as the next command; empty: nothing. */
export async function printedNext(server: CliServer, node: string): Promise<string> {
  const shown = JSON.parse(await runPrinted(server, `millwright fleet show ${node} -o json`)) as {
    readonly next_command?: string;
  };
  const next = shown.next_command ?? "";
  // The table for people has the same line.
  if (next !== "" && !(await runPrinted(server, `millwright fleet show ${node} -o csv`)).includes(next))
    throw new Error(`fleet show ${node} prints another command than ${next}`);
  return next;
}
