import { TextInput, UnstyledButton } from "@mantine/core";
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { shownError } from "../api/errors.ts";
import classes from "./filter-bar.module.css";

interface FilterBarProps {
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
  readonly example: string;
  /** The server's refusal of the filter. */
  readonly error: unknown;
  readonly count: ReactNode;
  /** Words that are filters of their own. */
  readonly presets?: readonly { readonly label: string; readonly filter: string }[];
  readonly isOld: boolean;
  readonly onReadAgain: () => void;
}

/** The filter of a list, in the grammar of the API. Enter applies it; it is in the address then. */
export function FilterBar(props: FilterBarProps) {
  const { filter, onFilter, example, error, count, presets = [], isOld, onReadAgain } = props;
  const [text, setText] = useState(filter);
  useEffect(() => setText(filter), [filter]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onFilter(text.trim());
  };
  return (
    <form className={classes.bar} onSubmit={submit}>
      <TextInput
        data-filter
        className={classes.field ?? ""}
        aria-label="Filter"
        placeholder={`Filter, such as ${example}`}
        size="xs"
        value={text}
        error={error === null || error === undefined ? undefined : shownError(error).message}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          setText(filter);
          event.currentTarget.blur();
        }}
      />
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
      <span className={classes.count} aria-live="polite">
        {count}
      </span>
      {isOld && (
        <UnstyledButton className={classes.preset} onClick={onReadAgain}>
          The list has changed: show
        </UnstyledButton>
      )}
    </form>
  );
}
