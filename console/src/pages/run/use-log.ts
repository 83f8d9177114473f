import { useEffect, useState } from "react";
import { FollowedLog, type LogState, NO_LOG } from "./followed-log.ts";

/** The log of a run as long as somebody looks at it. */
export function useLog(runId: string): { readonly state: LogState; readonly log: FollowedLog | undefined } {
  const [state, setState] = useState(NO_LOG);
  const [log, setLog] = useState<FollowedLog | undefined>();
  useEffect(() => {
    const followed = new FollowedLog(runId, setState);
    setState(NO_LOG);
    setLog(followed);
    followed.start();
    return () => followed.stop();
  }, [runId]);
  return { state, log };
}
