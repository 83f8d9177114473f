import { Checkbox, TextInput } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { exactTime } from "../../api/times.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Section } from "../../parts/section.tsx";
import classes from "./log.module.css";
import type { LogLine } from "./log-lines.ts";
import { useLog } from "./use-log.ts";

const LINE_HEIGHT = 18;

/** What the steps have written, as they write it. */
export function Log({ runId }: { readonly runId: string }) {
  const { lines, error, isWhole } = useLog(runId);
  const [isFollowed, setFollowed] = useState(true);
  const [isErrorsOnly, setErrorsOnly] = useState(false);
  const [text, setText] = useState("");
  const wanted = useDeferredValue(text.toLowerCase());
  const shown = useMemo(
    () => lines.filter((line) => (!isErrorsOnly || line.isError) && line.text.toLowerCase().includes(wanted)),
    [lines, isErrorsOnly, wanted],
  );
  const tools = (
    <div className={classes.tools}>
      <TextInput
        data-filter
        size="xs"
        aria-label="Search the log"
        placeholder="Search the log"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Checkbox size="xs" label="errors only" checked={isErrorsOnly} onChange={() => setErrorsOnly(!isErrorsOnly)} />
      {!isWhole && <Checkbox size="xs" label="follow" checked={isFollowed} onChange={() => setFollowed(!isFollowed)} />}
      <span className="dim">{shown.length.toLocaleString("en")} lines</span>
      <CopyButton label="copy as CLI" text={`millwright run logs ${runId}`} />
    </div>
  );
  return (
    <Section title="Log" aside={tools}>
      {error !== null && <ErrorNote error={error} />}
      {lines.length === 0 ? (
        <p className="dim">{isWhole ? "The steps have written nothing." : "Nothing was written yet."}</p>
      ) : (
        <Lines lines={shown} isFollowed={isFollowed && !isWhole} onLeave={() => setFollowed(false)} />
      )}
    </Section>
  );
}

interface LinesProps {
  readonly lines: readonly LogLine[];
  readonly isFollowed: boolean;
  /** Somebody scrolls up, and wants to stay there. */
  readonly onLeave: () => void;
}

function Lines({ lines, isFollowed, onLeave }: LinesProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 20,
  });
  useEffect(() => {
    if (isFollowed && lines.length > 0) virtual.scrollToIndex(lines.length - 1);
  }, [isFollowed, lines.length, virtual]);
  return (
    <div
      ref={scroller}
      className={classes.scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      tabIndex={0}
      role="log"
      aria-label="Log lines"
      aria-live="off"
      onWheel={(event) => {
        if (event.deltaY < 0) onLeave();
      }}
    >
      <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const line = lines[index];
          return (
            line && (
              <div
                key={line.number}
                className={classes.line}
                data-error={line.isError || undefined}
                style={{ transform: `translateY(${start}px)` }}
              >
                <span className={classes.at} title={`${exactTime(line.at)} · ${line.step}`}>
                  {exactTime(line.at).slice(11)}
                </span>
                <span>
                  {line.isError && <span className={classes.mark}>! </span>}
                  {line.text}
                </span>
              </div>
            )
          );
        })}
      </div>
    </div>
  );
}
