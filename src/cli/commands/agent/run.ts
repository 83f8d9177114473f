import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AgentDisk } from "../../agent/agent-disk.ts";
import { readAgentConfig } from "../../agent/config.ts";
import { runAgent } from "../../agent/run-agent.ts";
import { Refused, ServerCalls } from "../../agent/server-calls.ts";
import { CliError, EXIT, UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { tlsFiles } from "../../client/tls-files.ts";
import { printLine } from "../../terminal/printing.ts";

export interface AgentRunOptions {
  readonly directory: string;
  readonly node?: string;
  readonly enrollTokenFile?: string;
  readonly stateDir: string;
}

const AGENT_VERSION = "1";

/** Ends with 0 when it was uninstalled or stopped: then nobody should start it again. */
export async function runAgentCommand(session: Session, options: AgentRunOptions): Promise<undefined> {
  const { terminal, globals, signal } = session;
  const { directory, stateDir, enrollTokenFile = join(directory, "enrolment-token") } = options;
  const disk = new AgentDisk(stateDir);
  const known = disk.identity() ?? readNodeFile(join(directory, "node.json"));
  const server = globals.server ?? terminal.env.MILLWRIGHT_SERVER ?? known.server;
  const node = options.node ?? known.node;
  if (server === undefined) throw new UsageError("--server: who has not enrolled must say where the server is");
  if (node === undefined) throw new UsageError("--node: who has not enrolled must say which node this is");
  const end = await runAgent({
    calls: new ServerCalls({ server, node, tls: tlsFiles(globals) }),
    ...{ disk, config: readAgentConfig(join(directory, "agent.json")), version: AGENT_VERSION, signal },
    readToken: () => readToken(enrollTokenFile),
    log: (line) => printLine(terminal.stderr, `${line}`),
  }).catch((error: unknown) => {
    if (error instanceof Refused)
      throw new CliError(
        EXIT.denied,
        error.message,
        "an operator makes another token: millwright fleet bootstrap reissue",
      );
    throw error;
  });
  printLine(terminal.stdout, `${end}`);
  return undefined;
}

function readNodeFile(path: string): { readonly server?: string; readonly node?: string } {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as { server?: string; node?: string };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new UsageError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function readToken(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    throw new UsageError(`--enroll-token-file: ${path} cannot be read`);
  }
}
