import { useEffect, useId, useMemo, useRef } from "react";
import type { Lifecycle, LifecycleState } from "../../../../contract/millwright/v1/lifecycle_pb.js";
import classes from "./diagram.module.css";
import { GONE, placeLifecycle } from "./layout.ts";

interface DiagramProps {
  readonly lifecycle: Lifecycle;
  readonly counts: ReadonlyMap<string, number>;
  /** The state that one thing is in: it is marked, and in view. */
  readonly current?: string;
}

/** The table by which the server decides, drawn, with how many things are in each state. The table below says the same in words. */
export function Diagram({ lifecycle, counts, current }: DiagramProps) {
  const placed = useMemo(() => placeLifecycle(lifecycle), [lifecycle]);
  // Several diagrams stand on one page.
  const arrow = useId();
  const scroller = useRef<HTMLElement>(null);
  useEffect(() => {
    const place = placed.states.find(({ name }) => name === current);
    if (!scroller.current || !place) return;
    const { clientWidth, clientHeight } = scroller.current;
    scroller.current.scrollLeft = place.x + place.width / 2 - placed.left - clientWidth / 2;
    scroller.current.scrollTop = place.y + place.height / 2 - placed.top - clientHeight / 2;
  }, [placed, current]);
  const states = new Map(lifecycle.states.map((state) => [state.name, state]));
  return (
    <section
      ref={scroller}
      className={classes.scroll}
      data-single={current !== undefined || undefined}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      tabIndex={0}
      aria-label={`Diagram of ${lifecycle.kind}`}
    >
      <svg
        className={classes.diagram}
        width={placed.width}
        height={placed.height}
        viewBox={`${placed.left} ${placed.top} ${placed.width} ${placed.height}`}
        role="img"
        aria-label={`States of ${lifecycle.kind} and the ways between them`}
      >
        <defs>
          <marker id={arrow} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0 L8 4 L0 8 z" className={classes.arrow} />
          </marker>
        </defs>
        {placed.ways.map(({ key, path, isFailure, says }) => (
          <path
            key={key}
            d={path}
            className={classes.way}
            data-failure={isFailure || undefined}
            data-next={key.startsWith(`${current} `) || undefined}
            markerEnd={`url(#${arrow})`}
          >
            <title>{says}</title>
          </path>
        ))}
        {placed.states.map(({ name, x, y, width, height }) => {
          const state = states.get(name);
          const count = counts.get(name) ?? 0;
          return (
            <g
              key={name}
              className={classes.state}
              data-tone={toneOfState(state)}
              data-empty={count === 0 || undefined}
              data-gone={name === GONE || undefined}
              data-current={name === current || undefined}
            >
              <title>{state?.doc ?? "It is removed."}</title>
              <rect x={x} y={y} width={width} height={height} rx="4" />
              <text x={x + width / 2} y={y + (count > 0 ? 17 : 24)}>
                {name}
              </text>
              {count > 0 && (
                <text x={x + width / 2} y={y + 32} className={classes.count}>
                  {count.toLocaleString("en")}
                </text>
              )}
            </g>
          );
        })}
      </svg>
    </section>
  );
}

const toneOfState = (state: LifecycleState | undefined): string =>
  state === undefined ? "calm" : state.trouble ? "trouble" : state.resting || state.terminal ? "calm" : "working";
