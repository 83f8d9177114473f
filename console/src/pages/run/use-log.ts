import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect, useState } from "react";
import { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { clientOf } from "../../api/services.ts";
import { type LogLine, LogLines } from "./log-lines.ts";

export interface FollowedLog {
  readonly lines: readonly LogLine[];
  readonly error: unknown;
  /** The run has ended, and all of it is here. */
  readonly isWhole: boolean;
}

const SHOW_EVERY_MS = 100;
const AGAIN_AFTER_MS = 1_500;

/** The log of a run from its beginning, and on as it is written: one stream, which goes on where it broke. */
export function useLog(runId: string): FollowedLog {
  const [log, setLog] = useState<FollowedLog>({ lines: [], error: null, isWhole: false });
  useEffect(() => {
    const ended = new AbortController();
    void follow(runId, ended.signal, setLog);
    return () => ended.abort();
  }, [runId]);
  return log;
}

async function follow(runId: string, signal: AbortSignal, show: (log: FollowedLog) => void): Promise<void> {
  const lines = new LogLines();
  let after = 0n;
  let timer: number | undefined;
  const showSoon = () => {
    timer ??= window.setTimeout(() => {
      timer = undefined;
      if (!signal.aborted) show({ lines: lines.all(), error: null, isWhole: false });
    }, SHOW_EVERY_MS);
  };
  while (!signal.aborted) {
    try {
      for await (const { chunk } of clientOf(RunService).streamRunLogs({ runId, after }, { signal })) {
        if (!chunk) continue;
        lines.add(chunk);
        after = chunk.seq;
        showSoon();
      }
      window.clearTimeout(timer);
      if (!signal.aborted) show({ lines: lines.all(), error: null, isWhole: true });
      return;
    } catch (error) {
      if (signal.aborted) return;
      const { code } = ConnectError.from(error);
      if (code === Code.NotFound || code === Code.PermissionDenied || code === Code.Unauthenticated)
        return show({ lines: [], error, isWhole: false });
      await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER_MS));
    }
  }
}
