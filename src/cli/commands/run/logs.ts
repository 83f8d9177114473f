import type { LogChunk } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { CliError, EXIT } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { type Column, renderChange, renderHead } from "../../terminal/output.ts";
import { printableLog } from "../../terminal/printable.ts";
import { isoTime } from "../../terminal/times.ts";
import { type LogText, readRunLog } from "./log-reader.ts";

export interface RunLogsOptions {
  readonly follow?: boolean;
  readonly tail?: number;
  readonly grep?: string;
  readonly step?: string;
}

const logColumns: readonly Column<LogText>[] = [
  { title: "SEQ", cell: ({ seq }) => String(seq) },
  { title: "AT", cell: ({ ts }) => isoTime(ts) },
  { title: "STEP", cell: ({ step }) => step },
  { title: "STREAM", cell: ({ stream }) => stream },
  { title: "TEXT", cell: ({ text }) => text },
];
const logJson = ({ seq, ts, step, stream, text }: LogText) => ({
  seq: String(seq),
  at: isoTime(ts),
  step,
  stream,
  text,
});

/** For people all that was said, in its order; for programs one record for each piece, with when, by which step and on which stream. */
export async function runLogs(session: Session, id: string, options: RunLogsOptions): Promise<undefined> {
  const style = session.style();
  const { follow = false, tail, grep, step } = options;
  const isPart = tail !== undefined || grep !== undefined || step !== undefined;
  if (isPart && follow) throw new CliError(EXIT.usage, "--follow goes with neither --tail, --grep nor --step");
  if (style.format !== "table") session.terminal.stdout.write(await renderHead(logColumns, style));
  for await (const log of isPart ? readLogPart(session, id, options) : readRunLog(session, { runId: id, follow })) {
    if (style.format === "table") session.terminal.stdout.write(printableLog(log.text));
    else session.terminal.stdout.write(await renderChange({ columns: logColumns, json: logJson }, log, style));
  }
}

const PART = 1_000;

/** From the end backwards, and printed in the order in which it was written. */
async function* readLogPart(
  session: Session,
  runId: string,
  { tail = 100, grep = "", step = "" }: RunLogsOptions,
): AsyncGenerator<LogText> {
  const client = await session.client(RunService);
  const found: LogChunk[] = [];
  for (let before = 0n, more = true; more && found.length < tail; ) {
    const limit = Math.min(PART, tail - found.length);
    const part = await client.readRunLog({ runId, before, limit, step, contains: grep }, { signal: session.signal });
    found.unshift(...part.chunks);
    before = part.chunks[0]?.seq ?? 0n;
    more = part.more;
  }
  const decoder = new TextDecoder();
  for (const { data, ...chunk } of found) yield { ...chunk, text: decoder.decode(data) };
}

export const sinkOf = ({ terminal }: Session, stream: string) =>
  stream === "stderr" ? terminal.stderr : terminal.stdout;
