import type { Session } from "../../client/session.ts";
import { type Column, renderChange, renderHead } from "../../terminal/output.ts";
import { printableLog } from "../../terminal/printable.ts";
import { isoTime } from "../../terminal/times.ts";
import { type LogText, readRunLog } from "./log-reader.ts";

export interface RunLogsOptions {
  readonly follow?: boolean;
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
export async function runLogs(session: Session, id: string, { follow = false }: RunLogsOptions): Promise<undefined> {
  const style = session.style();
  if (style.format !== "table") session.terminal.stdout.write(await renderHead(logColumns, style));
  for await (const log of readRunLog(session, { runId: id, follow })) {
    if (style.format === "table") session.terminal.stdout.write(printableLog(log.text));
    else session.terminal.stdout.write(await renderChange({ columns: logColumns, json: logJson }, log, style));
  }
}

export const sinkOf = ({ terminal }: Session, stream: string) =>
  stream === "stderr" ? terminal.stderr : terminal.stdout;
