import { Link } from "@tanstack/react-router";
import type { KindCounts } from "../../../../contract/millwright/v1/overview_pb.js";
import { useLifecycles } from "../../api/lifecycles.ts";
import { pluralOf } from "../../parts/count-words.ts";
import { type Tone, toneOf } from "../../tone/tone.ts";
import { ToneIcon } from "../../tone/tone-icon.tsx";
import { pathOfList } from "../thing-path.ts";
import classes from "./fleet.module.css";
import { fleetOf } from "./fleet-kinds.ts";

/** How many things there are of each kind, by state. */
export function Fleet({ kinds }: { readonly kinds: readonly KindCounts[] }) {
  const shown = fleetOf(kinds);
  return (
    <ul className={classes.kinds}>
      {shown.map((counts) => (
        <Kind key={counts.kind} counts={counts} />
      ))}
    </ul>
  );
}

function Kind({ counts: { kind, things, states } }: { readonly counts: KindCounts }) {
  const { data: lifecycles } = useLifecycles();
  const list = pathOfList(kind, "");
  const toned = states
    .map(({ state, things: count }) => ({
      ...{ state, count },
      tone: toneOf({ state: lifecycles?.get(kind)?.states.find(({ name }) => name === state), now: 0 }),
    }))
    .toSorted((a, b) => Number(b.count - a.count));
  return (
    <li className={classes.kind}>
      <span className={classes.name}>
        {list === undefined ? pluralOf(kind) : <Link to={list}>{pluralOf(kind)}</Link>}
      </span>
      <span className={classes.total}>{things.toLocaleString("en")}</span>
      <span className={classes.bar} aria-hidden>
        {toned.map(({ state, count, tone }) => (
          <span key={state} data-tone={tone} style={{ flexGrow: Number(count) }} title={`${state} ${count}`} />
        ))}
      </span>
      <span className={classes.states}>
        {toned.map(({ state, count, tone }) => (
          <State key={state} kind={kind} state={state} count={count} tone={tone} />
        ))}
      </span>
    </li>
  );
}

interface StateProps {
  readonly kind: string;
  readonly state: string;
  readonly count: bigint;
  readonly tone: Tone;
}

function State({ kind, state, count, tone }: StateProps) {
  return (
    <span className={classes.state} data-tone={tone} title={`${kind} ${state}`}>
      <ToneIcon tone={tone} /> {count.toLocaleString("en")} {state}
    </span>
  );
}
