import { useLive } from "../live/live.tsx";
import type { LiveState } from "../live/live-events.ts";
import classes from "./live-indicator.module.css";

const WORDS: Readonly<Record<LiveState, { readonly word: string; readonly means: string }>> = {
  live: { word: "live", means: "Changes show as they happen." },
  connecting: { word: "connecting", means: "Changes will show once the server answers." },
  lost: { word: "lost", means: "The server does not answer. What is shown may be old." },
  paused: { word: "paused", means: "Nobody looks at this tab. It goes on when somebody does." },
  off: { word: "not live", means: "Your role may not watch events. Load the page again to see changes." },
};

export function LiveIndicator() {
  const { state } = useLive();
  const { word, means } = WORDS[state];
  return (
    <span className={classes.live} data-state={state} title={means} role="status">
      {word}
    </span>
  );
}
