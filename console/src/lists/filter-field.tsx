import { TextInput } from "@mantine/core";
import { type KeyboardEvent, useEffect, useId, useState } from "react";
import { shownError } from "../api/errors.ts";
import classes from "./filter-field.module.css";
import { useCompletion } from "./use-completion.ts";

interface FilterFieldProps {
  readonly kind: string;
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
  readonly example: string;
  readonly error: unknown;
}

/** The filter, which completes what can stand at its end. Arrows choose, Tab takes; Enter applies what was typed, unless something is chosen. */
export function FilterField({ kind, filter, onFilter, example, error }: FilterFieldProps) {
  const [text, setText] = useState(filter);
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const listId = useId();
  useEffect(() => setText(filter), [filter]);
  const { from, suggestions } = useCompletion(kind, text, isOpen);
  const isShown = isOpen && suggestions.length > 0;
  const type = (value: string) => {
    setText(value);
    setChosen(-1);
    setOpen(true);
  };
  const take = (index: number) => type(text.slice(0, from) + (suggestions[index]?.text ?? ""));
  const apply = () => {
    setOpen(false);
    onFilter(text.trim());
  };
  const leave = () => {
    setOpen(false);
    setChosen(-1);
  };
  const pressed = (event: KeyboardEvent<HTMLInputElement>) => {
    const { key } = event;
    const step = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
    if (key === "Escape" && isShown) leave();
    else if (key === "Escape") {
      setText(filter);
      event.currentTarget.blur();
    } else if (step !== 0 && isShown) setChosen((chosen + step + suggestions.length + 1) % (suggestions.length + 1));
    else if (key === "Tab" && isShown && !event.shiftKey && text !== filter) take(Math.max(chosen, 0));
    else if (key === "Enter" && isShown && chosen >= 0 && chosen < suggestions.length) take(chosen);
    else if (key === "Enter") apply();
    else return;
    if (key !== "Escape") event.preventDefault();
  };
  return (
    <div className={classes.field}>
      <TextInput
        data-filter
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={isShown}
        aria-controls={listId}
        {...(isShown && chosen >= 0 && { "aria-activedescendant": `${listId}-${chosen}` })}
        aria-label="Filter"
        placeholder={`Filter, such as ${example}`}
        size="xs"
        autoComplete="off"
        spellCheck={false}
        value={text}
        error={error === null || error === undefined ? undefined : shownError(error).message}
        onChange={(event) => type(event.currentTarget.value)}
        onFocus={() => setOpen(true)}
        onBlur={leave}
        onKeyDown={pressed}
      />
      <div id={listId} role="listbox" aria-label="What can stand here" className={classes.list} hidden={!isShown}>
        {suggestions.map(({ text: word, doc }, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
          <div
            key={word}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === chosen}
            className={classes.option}
            onMouseDown={(event) => {
              event.preventDefault();
              take(index);
            }}
          >
            <span className="mono">{word}</span>
            <span className="dim">{doc}</span>
          </div>
        ))}
      </div>
    </div>
  );
}
