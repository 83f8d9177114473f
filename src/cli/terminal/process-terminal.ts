import type { Sink, Terminal } from "../client/session.ts";

/** The terminal that this process runs in. */
export function createProcessTerminal(): Terminal {
  const interrupt = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupt.abort());
  return {
    env: process.env,
    stdout: sinkOf(process.stdout),
    stderr: sinkOf(process.stderr),
    stdin: {
      isTTY: process.stdin.isTTY === true,
      readAll,
      ask: (question, options) => ask(question, options.hidden, interrupt.signal),
    },
    now: () => new Date(),
    interrupted: interrupt.signal,
  };
}

const sinkOf = (stream: NodeJS.WriteStream): Sink => ({
  write: (text) => void stream.write(text),
  isTTY: stream.isTTY === true,
  get columns() {
    return stream.isTTY ? stream.columns : undefined;
  },
  get rows() {
    return stream.isTTY ? stream.rows : undefined;
  },
});

async function readAll(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write("Reading from the terminal; Ctrl-D ends the input.\n");
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

/** Asks on standard error, so that the output stays clean; hidden answers are swallowed before they are echoed. */
async function ask(question: string, hidden: boolean, signal: AbortSignal): Promise<string> {
  const [{ createInterface }, { Writable }] = await Promise.all([
    import("node:readline/promises"),
    import("node:stream"),
  ]);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  if (hidden) process.stderr.write(question);
  const lines = createInterface({ input: process.stdin, output: hidden ? nowhere : process.stderr, terminal: true });
  lines.on("SIGINT", () => process.emit("SIGINT"));
  try {
    return await lines.question(hidden ? "" : question, { signal });
  } finally {
    lines.close();
    if (hidden) process.stderr.write("\n");
  }
}
