import type { Event } from "../../../contract/millwright/v1/event_pb.js";
import { useStateOf } from "../api/lifecycles.ts";
import { toneOf } from "../tone/tone.ts";
import { ToneIcon } from "../tone/tone-icon.tsx";

/** What an event says, in a few words: from where to where, or what it is called. */
export function EventWhat({ event }: { readonly event: Event }) {
  const { kind, type, fromState, toState, alarm } = event;
  const state = useStateOf(kind, toState);
  if (toState === "") return <>{type.replaceAll("_", " ")}</>;
  const tone = toneOf({ state, now: 0, isFailing: alarm !== "" });
  return (
    <span>
      {fromState !== "" && <span className="dim">{fromState} → </span>}
      <span style={{ whiteSpace: "nowrap" }}>
        <ToneIcon tone={tone} /> <strong>{toState}</strong>
      </span>
    </span>
  );
}
