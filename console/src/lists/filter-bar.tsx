import { UnstyledButton } from "@mantine/core";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { useMe } from "../shell/me.tsx";
import classes from "./filter-bar.module.css";
import { FilterField } from "./filter-field.tsx";
import { GroupPicker } from "./group-picker.tsx";
import type { ListView } from "./list-search.ts";

const SavedViews = lazy(async () => ({ default: (await import("./saved-views.tsx")).SavedViews }));

interface FilterBarProps {
  readonly kind: string;
  readonly view: ListView;
  readonly onFilter: (filter: string) => void;
  readonly onGroup: (group: string) => void;
  readonly onView: (view: ListView) => void;
  readonly example: string;
  /** The server's refusal of the filter. */
  readonly error: unknown;
  readonly count: ReactNode;
  /** Words that are filters of their own. */
  readonly presets?: readonly { readonly label: string; readonly filter: string }[];
  readonly isOld: boolean;
  readonly onReadAgain: () => void;
}

/** The filter of a list, in the grammar of the API, its groups, and the views that somebody kept. All of it is in the address. */
export function FilterBar(props: FilterBarProps) {
  const { kind, view, onFilter, onGroup, onView, example, error, count, presets = [], isOld, onReadAgain } = props;
  const { filter, group } = view;
  const { may } = useMe();
  const [areViewsOpen, setViewsOpen] = useState(false);
  return (
    <div className={classes.bar}>
      <FilterField kind={kind} filter={filter} onFilter={onFilter} example={example} error={error} />
      {presets.map((preset) => (
        <UnstyledButton
          key={preset.filter}
          className={classes.preset}
          aria-pressed={filter === preset.filter}
          onClick={() => onFilter(filter === preset.filter ? "" : preset.filter)}
        >
          {preset.label}
        </UnstyledButton>
      ))}
      <GroupPicker kind={kind} group={group} onGroup={onGroup} />
      {may.has("millwright.v1.SavedViewService/ListSavedViews") && (
        <UnstyledButton
          className={classes.preset}
          aria-expanded={areViewsOpen}
          onClick={() => setViewsOpen(!areViewsOpen)}
        >
          Views
        </UnstyledButton>
      )}
      <span className={classes.count} aria-live="polite">
        {count}
      </span>
      {isOld && (
        <UnstyledButton className={classes.preset} onClick={onReadAgain}>
          The list has changed: show
        </UnstyledButton>
      )}
      <Suspense fallback={null}>{areViewsOpen && <SavedViews kind={kind} view={view} onView={onView} />}</Suspense>
    </div>
  );
}
