import { Button, Checkbox, TextInput } from "@mantine/core";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { CopyButton } from "../../parts/copy-button.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Section } from "../../parts/section.tsx";
import type { FollowedLog, LogState } from "./followed-log.ts";
import classes from "./log.module.css";
import { type LogLine, linesThat, placeOfStep } from "./log-lines.ts";
import { LogView } from "./log-view.tsx";
import { saveLog } from "./save-log.ts";
import { useLog } from "./use-log.ts";

/** A step whose place in the log is wanted. */
export interface LogPlace {
  readonly step: string;
  readonly hasFailed: boolean;
}

interface LogProps {
  readonly runId: string;
  readonly failedStep: string | undefined;
  readonly place: LogPlace | undefined;
  readonly onPlace: (place: LogPlace | undefined) => void;
}

/** Fewer than a screen may show: nobody could scroll for more. */
const FEW_LINES = 80;

/** What the steps have written, its end first, and as they write it. */
export function Log({ runId, failedStep, place, onPlace }: LogProps) {
  const { state, log } = useLog(runId);
  const { lines, error, hasEnded, hasEarlier } = state;
  const [isFollowed, setFollowed] = useState(true);
  const { filter, isWanted, setText, setErrorsOnly } = useLineFilter(state, log);
  const shown = useMemo(() => (isWanted ? linesThat(lines, isWanted) : lines), [lines, isWanted]);
  const target = usePlace({ state, log, place });
  const goTo = (wanted: LogPlace) => {
    setText("");
    setErrorsOnly(false);
    setFollowed(false);
    onPlace(wanted);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: somebody asked for another place
  useEffect(() => {
    if (place) goTo(place);
  }, [place]);
  useEffect(() => {
    if (hasEarlier && lines.count < FEW_LINES) void log?.readEarlier();
  }, [hasEarlier, lines, log]);
  const tools = (
    <div className={classes.tools}>
      <TextInput
        data-filter
        size="xs"
        aria-label="Search the log"
        placeholder="Search the log"
        value={filter.text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Checkbox
        size="xs"
        label="errors only"
        checked={filter.isErrorsOnly}
        onChange={() => setErrorsOnly(!filter.isErrorsOnly)}
      />
      {!hasEnded && (
        <Checkbox
          size="xs"
          label="follow"
          checked={isFollowed}
          onChange={() => {
            onPlace(undefined);
            setFollowed(!isFollowed);
          }}
        />
      )}
      {failedStep !== undefined && (
        <Button size="compact-xs" variant="default" onClick={() => goTo({ step: failedStep, hasFailed: true })}>
          Go to the failure
        </Button>
      )}
      <span className="dim" role="status">
        {hasEarlier ? "the newest " : ""}
        {shown.count.toLocaleString("en")} lines
      </span>
      {log && lines.count > 0 && (
        <Button size="compact-xs" variant="default" onClick={() => void saveLog(runId, log)}>
          Download
        </Button>
      )}
      <CopyButton label="copy as CLI" text={`millwright run logs ${runId}`} />
    </div>
  );
  return (
    <Section title="Log" aside={tools}>
      {error !== null && <ErrorNote error={error} />}
      {lines.count === 0 ? (
        <p className="dim">{hasEnded ? "The steps have written nothing." : "Nothing was written yet."}</p>
      ) : (
        <LogView
          lines={shown}
          wanted={filter.text.toLowerCase()}
          target={target}
          isFollowed={isFollowed && place === undefined}
          onLeave={() => setFollowed(false)}
          onTop={() => void log?.readEarlier()}
        />
      )}
    </Section>
  );
}

/** Which lines are wanted; undefined: all. Who searches wants the whole log, and not only what a screen shows. */
function useLineFilter({ hasEarlier }: LogState, log: FollowedLog | undefined) {
  const [text, setText] = useState("");
  const [isErrorsOnly, setErrorsOnly] = useState(false);
  const wanted = useDeferredValue(text.toLowerCase());
  const isFiltered = wanted !== "" || isErrorsOnly;
  useEffect(() => {
    if (isFiltered && hasEarlier) void log?.readAll();
  }, [isFiltered, hasEarlier, log]);
  const isWanted = useMemo(
    () =>
      isFiltered
        ? (line: LogLine) => (!isErrorsOnly || line.isError) && line.text.toLowerCase().includes(wanted)
        : undefined,
    [isFiltered, isErrorsOnly, wanted],
  );
  return { filter: { text, isErrorsOnly }, isWanted, setText, setErrorsOnly };
}

interface PlaceUse {
  readonly state: LogState;
  readonly log: FollowedLog | undefined;
  readonly place: LogPlace | undefined;
}

/** The number of the line that is wanted. Where the step began, or that it wrote nothing, only the whole log can say. */
function usePlace({ state: { lines, hasEarlier }, log, place }: PlaceUse) {
  const index = useMemo(() => (place ? placeOfStep(lines, place.step, place.hasFailed) : -1), [lines, place]);
  const isUnsure = place !== undefined && hasEarlier && (!place.hasFailed || index < 0);
  useEffect(() => {
    if (isUnsure) void log?.readAll();
  }, [isUnsure, log]);
  const number = index < 0 || isUnsure ? undefined : lines.numberOf(index);
  // biome-ignore lint/correctness/useExhaustiveDependencies: who asks for the same place once more is led there once more
  return useMemo(() => (number === undefined ? undefined : { number }), [number, place]);
}
