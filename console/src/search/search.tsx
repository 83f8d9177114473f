import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useDeferredValue, useId, useState } from "react";
import { PAGES } from "../pages/pages.ts";
import { useMe } from "../shell/me.tsx";
import { PlainDialog } from "../shell/plain-dialog.tsx";
import { type Found, findThings } from "./find-things.ts";
import classes from "./search.module.css";

/** One box for whatever somebody has in hand: an id, a serial, an address, the name of a page. */
export function Search({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const listId = useId();
  const navigate = useNavigate();
  const hits = useHits(text);
  const open = ({ to }: Found) => {
    onClose();
    void navigate({ href: to });
  };
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && hits.length > 0) {
      event.preventDefault();
      setChosen((chosen + step + hits.length) % hits.length);
    }
    const hit = hits[chosen];
    if (event.key === "Enter" && hit) open(hit);
  };
  return (
    <PlainDialog label="Search" onClose={onClose}>
      <input
        className={classes.field}
        aria-label="Search"
        placeholder="Id, serial, MAC, address, page …"
        role="combobox"
        aria-expanded={hits.length > 0}
        aria-controls={listId}
        aria-activedescendant={hits.length > 0 ? `${listId}-${chosen}` : undefined}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={move}
      />
      <div id={listId} role="listbox" aria-label="Found" className={classes.list}>
        {hits.map((hit, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus, and names the chosen one
          // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the field opens the chosen one
          <div
            key={`${hit.kind} ${hit.id}`}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === chosen}
            className={classes.hit}
            onClick={() => open(hit)}
            onMouseMove={() => setChosen(index)}
          >
            <span className={classes.kind}>{hit.kind}</span>
            <span className={classes.id}>{hit.id}</span>
            <span className="dim">{hit.about}</span>
          </div>
        ))}
      </div>
      {text !== "" && hits.length === 0 && <p className="dim">Nothing is called that.</p>}
    </PlainDialog>
  );
}

function useHits(text: string): readonly Found[] {
  const { may } = useMe();
  const wanted = useDeferredValue(text.trim());
  const { data = [] } = useQuery({
    queryKey: ["search", "all", wanted],
    queryFn: ({ signal }) => findThings(wanted, signal),
    enabled: wanted.length > 1 && may.has("millwright.v1.SearchService/Search"),
    placeholderData: keepPreviousData,
    staleTime: 5_000,
  });
  const pages = PAGES.filter(
    ({ nav, needs, title }) =>
      nav && (needs === undefined || may.has(needs)) && title.toLowerCase().includes(wanted.toLowerCase()),
  ).map(({ path, title }) => ({ kind: "page", id: title, about: "", to: path }));
  return [...pages, ...(wanted.length > 1 ? data : [])];
}
