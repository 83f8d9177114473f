import { setTimeout as pause } from "node:timers/promises";
import type { LogChunk } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { isDisconnection, reasonOf, systemCodeOf, wasCut } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printLine } from "../../terminal/printing.ts";

export type LogText = Pick<LogChunk, "seq" | "ts" | "step" | "stream"> & { readonly text: string };

const FIRST_PAUSE_MS = 250;
const MOST_PAUSE_MS = 5_000;
/** A server that is started anew is back by then. */
const PATIENCE_MS = 120_000;
/** What is not our server refuses or resets a connection at once. */
const LASTED_MS = 1_000;

export interface LogReading {
  readonly runId: string;
  /** To the end of the run, and past a server that stops meanwhile: the run goes on without it. */
  readonly follow: boolean;
  /** The server was heard of a moment ago. Otherwise one that is not there is an error at once. */
  readonly isConnected?: boolean;
}

/** What the steps of a run said, each piece once. */
export async function* readRunLog(
  session: Session,
  { runId, follow, isConnected = false }: LogReading,
): AsyncGenerator<LogText> {
  const client = await session.client(RunService, { streaming: true });
  const { terminal, signal } = session;
  // One for each stream: a character may come in two pieces.
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let after = 0n;
  let wasHeard = isConnected;
  let lost: { readonly at: number; readonly pauseMs: number } | undefined;
  for (;;) {
    const calledAt = terminal.now().getTime();
    try {
      const request = { runId, after, noFollow: !follow };
      for await (const { chunk } of client.streamRunLogs(request, { signal })) {
        if (!chunk) continue;
        const { seq, ts, step, stream, data } = chunk;
        lost = undefined;
        wasHeard = true;
        after = seq;
        const decoder = decoders[stream === "stderr" ? "stderr" : "stdout"];
        yield { seq, ts, step, stream, text: decoder.decode(data, { stream: true }) };
      }
      return;
    } catch (error) {
      if (!follow || signal.aborted || !isDisconnection(error)) throw error;
      const now = terminal.now().getTime();
      // What the server says itself, such as that it stops, shows that there was one; so does a connection that lasted, over which
      // nothing came: a run that waits for its machine has no log yet.
      wasHeard ||= systemCodeOf(error) === undefined || (wasCut(error) && now - calledAt > LASTED_MS);
      if (!wasHeard || (lost && now - lost.at > PATIENCE_MS)) throw error;
      if (!lost) printLine(terminal.stderr, `connection lost (${reasonOf(error)}); trying again`);
      lost = { at: lost?.at ?? now, pauseMs: Math.min((lost?.pauseMs ?? FIRST_PAUSE_MS / 2) * 2, MOST_PAUSE_MS) };
      await pause(lost.pauseMs, undefined, { signal });
    }
  }
}
