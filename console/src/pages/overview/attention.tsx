import { Link } from "@tanstack/react-router";
import { type AttentionGroup, AttentionReason } from "../../../../contract/millwright/v1/overview_pb.js";
import { harmless } from "../../api/hostile-text.ts";
import { Age } from "../../parts/age.tsx";
import { countWords } from "../../parts/count-words.ts";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { pathOfList } from "../thing-path.ts";
import classes from "./attention.module.css";
import { RetryGroup } from "./retry-group.tsx";

/** Things in one trouble are one line: what it is, since when, and where to see all of them. The longest waiting comes first. */
export function Attention({ groups }: { readonly groups: readonly AttentionGroup[] }) {
  return (
    <ul className={classes.groups}>
      {groups.map((group) => (
        <Group key={`${group.kind} ${group.reason} ${group.state} ${group.cause} ${group.rackId}`} group={group} />
      ))}
    </ul>
  );
}

function Group({ group }: { readonly group: AttentionGroup }) {
  const { kind, reason, state, cause, message, things, since, rackId, ids, filter } = group;
  const [first = ""] = ids;
  const list = things > 1 ? pathOfList(kind, filter) : undefined;
  return (
    <li className={classes.group}>
      <span className={classes.state}>
        <StateChip
          kind={kind}
          id={first}
          state={state}
          needsPerson={reason === AttentionReason.NEEDS_PERSON}
          isFailing
        />
      </span>
      <span className={classes.what}>
        {things === 1 ? (
          <ThingLink kind={kind} id={first} withKind />
        ) : list === undefined ? (
          countWords(things, kind)
        ) : (
          <Link to={list}>{countWords(things, kind)}</Link>
        )}
        {rackId !== "" && <span className="dim"> in {rackId}</span>}
        {kind === "run" && things > 1 && filter !== "" && (
          <div className={classes.action}>
            <RetryGroup filter={filter} />
          </div>
        )}
      </span>
      <span className={classes.why}>
        {reason === AttentionReason.ABOVE_SLA && "longer in this state than its SLA. "}
        {harmless(message)} {cause !== "" && <code className="dim">{cause}</code>}
      </span>
      <span className={classes.since}>
        <Age at={since} />
      </span>
    </li>
  );
}
