import classes from "./filter-bar.module.css";
import { useListFields } from "./list-fields.ts";

interface GroupPickerProps {
  readonly kind: string;
  readonly group: string;
  readonly onGroup: (group: string) => void;
}

/** By which field the list is grouped. Labels have a key of their own each: they are chosen by the address, and by a saved view. */
export function GroupPicker({ kind, group, onGroup }: GroupPickerProps) {
  const { data: fields = [] } = useListFields(kind);
  const offered = fields.filter(({ groups, type }) => groups && type !== "labels").map(({ name }) => name);
  if (group !== "" && !offered.includes(group)) offered.unshift(group);
  if (offered.length === 0) return null;
  return (
    <select
      aria-label="Group by"
      className={`${classes.preset} ${classes.group}`}
      value={group}
      onChange={(event) => onGroup(event.currentTarget.value)}
    >
      <option value="">No groups</option>
      {offered.map((name) => (
        <option key={name} value={name}>
          by {name}
        </option>
      ))}
    </select>
  );
}
