import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef } from "react";
import { exactTime } from "../../api/times.ts";
import { styledParts } from "./ansi.ts";
import { indexOfNumber, type Lines, type LogLine } from "./log-lines.ts";
import classes from "./log-view.module.css";

const LINE_HEIGHT = 18;
/** Of a bar below the lines, where one is longer than the view is wide. */
const BAR_HEIGHT = 16;
/** So many lines before the first that is here, more are read. */
const NEAR_TOP = 40;

interface LogViewProps {
  readonly lines: Lines;
  /** In small letters: what is marked in each line. */
  readonly wanted: string;
  /** The line that is shown, and marked. */
  readonly target: { readonly number: number } | undefined;
  readonly isFollowed: boolean;
  /** Somebody goes up, and wants to stay there. */
  readonly onLeave: () => void;
  /** The first line is near. */
  readonly onTop: () => void;
}

/** Lines of one height, of which only those on the screen are there: a million scroll as ten do. */
export function LogView({ lines, wanted, target, isFollowed, onLeave, onTop }: LogViewProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: lines.count,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 20,
  });
  const anchor = useRef({ number: 0, offset: 0, top: 0 });
  const noteAnchor = () => {
    if (!scroller.current) return;
    const { scrollTop: top, scrollHeight, clientHeight } = scroller.current;
    const isAtEnd = scrollHeight - top - clientHeight < LINE_HEIGHT;
    if (isFollowed && !isAtEnd && top < anchor.current.top) onLeave();
    const index = Math.floor(top / LINE_HEIGHT);
    anchor.current = { number: lines.numberOf(index), offset: top - index * LINE_HEIGHT, top };
    if (index < NEAR_TOP) onTop();
  };
  // What is put before the lines must not move those that somebody reads.
  useLayoutEffect(() => {
    if (!scroller.current) return;
    if (isFollowed) scroller.current.scrollTop = lines.count * LINE_HEIGHT;
    else if (target === undefined) {
      const { number, offset } = anchor.current;
      scroller.current.scrollTop = indexOfNumber(lines, number) * LINE_HEIGHT + offset;
    }
  }, [lines, isFollowed, target]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is shown once, and not each time that a line is added
  useEffect(() => {
    if (target) virtual.scrollToIndex(indexOfNumber(lines, target.number), { align: "center" });
  }, [target]);
  return (
    <div
      ref={scroller}
      className={classes.scroller}
      style={{ height: `min(${lines.count * LINE_HEIGHT + BAR_HEIGHT}px, 480px, 60vh)` }}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      tabIndex={0}
      role="log"
      aria-label="Log lines"
      aria-live="off"
      onScroll={noteAnchor}
    >
      <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const line = lines.at(index);
          const number = lines.numberOf(index);
          return (
            line && (
              <Line
                key={number}
                line={line}
                wanted={wanted}
                isTarget={number === target?.number}
                beginsStep={lines.at(index - 1)?.step !== line.step}
                top={start}
              />
            )
          );
        })}
      </div>
    </div>
  );
}

interface LineProps {
  readonly line: LogLine;
  readonly wanted: string;
  readonly isTarget: boolean;
  readonly beginsStep: boolean;
  readonly top: number;
}

function Line({ line, wanted, isTarget, beginsStep, top }: LineProps) {
  return (
    <div
      className={classes.line}
      data-error={line.isError || undefined}
      data-target={isTarget || undefined}
      data-begins={beginsStep || undefined}
      style={{ transform: `translateY(${top}px)` }}
    >
      <span className={classes.at} title={`${exactTime(line.at)} · ${line.step}`}>
        {exactTime(line.at).slice(11)}
      </span>
      {beginsStep && line.step !== "" && <span className={classes.step}>{line.step}</span>}
      <span>
        {line.isError && <span className={classes.mark}>! </span>}
        {wanted !== "" ? <Found text={line.text} wanted={wanted} /> : <Coloured line={line} />}
      </span>
    </div>
  );
}

const Coloured = ({ line: { text, coloured } }: { readonly line: LogLine }) =>
  coloured === undefined
    ? text
    : styledParts(coloured).map(({ text: part, colour, isBold, isDim }, at) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of a line do not move
          key={at}
          data-colour={colour}
          data-bold={isBold || undefined}
          data-dim={isDim || undefined}
        >
          {part}
        </span>
      ));

/** What was searched, marked where it stands. */
function Found({ text, wanted }: { readonly text: string; readonly wanted: string }) {
  const at = text.toLowerCase().indexOf(wanted);
  if (at < 0) return text;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + wanted.length)}</mark>
      {text.slice(at + wanted.length)}
    </>
  );
}
