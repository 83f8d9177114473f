import type { Rack, RackMember } from "../../../../contract/millwright/v1/rack_pb.js";
import { useLifecycles } from "../../api/lifecycles.ts";
import { shortId, ThingLink } from "../../parts/thing-link.tsx";
import { TONE_WORDS, type Tone, toneOf } from "../../tone/tone.ts";
import { ToneIcon } from "../../tone/tone-icon.tsx";
import classes from "./elevation.module.css";
import { byPlace, firmwareShown, type Overlay, placeOf, powerShown, type Shown } from "./overlay.ts";

interface ElevationProps {
  readonly rack: Rack;
  readonly overlay: Overlay;
  /** `kind/id` of each device that is chosen; absent: nothing is to be chosen. */
  readonly chosen?: ReadonlySet<string>;
  readonly onChoose?: (chosen: ReadonlySet<string>) => void;
}

const PARTS = [
  ["switch", "Switches"],
  ["machine", "Trays"],
  ["power_shelf", "Power shelves"],
] as const;

const memberKey = ({ kind, id }: Pick<RackMember, "kind" | "id">): string => `${kind}/${id}`;

/** The devices of a rack as they stand, each with what the overlay is about. */
export function Elevation({ rack, overlay, chosen, onChoose }: ElevationProps) {
  return (
    <div className={classes.elevation}>
      {PARTS.map(([kind, title]) => {
        const members = byPlace(rack.members.filter((member) => member.kind === kind));
        if (members.length === 0) return null;
        return (
          <div key={kind} className={classes.part}>
            <h3>
              {title} <span className="number">{members.length}</span>
            </h3>
            <ul className={classes.frame}>
              {members.map((member) => (
                <Unit
                  key={member.id}
                  member={member}
                  overlay={overlay}
                  isChosen={chosen?.has(memberKey(member)) ?? false}
                  {...(onChoose && { onToggle: () => onChoose(toggled(chosen, memberKey(member))) })}
                />
              ))}
            </ul>
          </div>
        );
      })}
    </div>
  );
}

function toggled(chosen: ReadonlySet<string> | undefined, key: string): ReadonlySet<string> {
  const all = new Set(chosen);
  if (!all.delete(key)) all.add(key);
  return all;
}

interface UnitProps {
  readonly member: RackMember;
  readonly overlay: Overlay;
  readonly isChosen: boolean;
  readonly onToggle?: () => void;
}

function Unit({ member, overlay, isChosen, onToggle }: UnitProps) {
  const { kind, id, name, slot, why } = member;
  const { text, tone } = useShown(member, overlay);
  return (
    <li className={classes.unit} data-tone={tone} data-selected={isChosen || undefined} title={why || undefined}>
      <span className={classes.slot} title={slot}>
        {placeOf(member) < 0 ? "" : placeOf(member)}
      </span>
      <span className={classes.name}>
        {onToggle && (
          <input type="checkbox" aria-label={`Select ${name || id}`} checked={isChosen} onChange={onToggle} />
        )}
        <ThingLink kind={kind} id={id} text={name || shortId(id)} />
      </span>
      <span className={classes.shown}>
        {tone !== "calm" && <ToneIcon tone={tone} label={TONE_WORDS[tone]} />}
        {text}
      </span>
    </li>
  );
}

function useShown(member: RackMember, overlay: Overlay): Shown {
  const { data: lifecycles } = useLifecycles();
  switch (overlay) {
    case "power":
      return powerShown(member);
    case "firmware":
      return firmwareShown(member);
    case "state": {
      // Machines are shown by a word of the rack's own, so that only the others are in their tables.
      const row = lifecycles?.get(member.kind)?.states.find(({ name }) => name === member.state);
      const tone: Tone = toneOf({ state: row, now: 0, isWaiting: row === undefined && member.why !== "" });
      return { text: member.assigned === "yes" ? `${member.state}, in use` : member.state, tone };
    }
  }
}
