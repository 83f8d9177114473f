import { Button, Kbd, UnstyledButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { useNow } from "../live/use-now.ts";
import { useKeys } from "./keys.ts";
import { LiveIndicator } from "./live-indicator.tsx";
import { useMe } from "./me.tsx";
import classes from "./top-bar.module.css";

const loadSearch = async () => ({ default: (await import("../search/search.tsx")).Search });
const Search = lazy(loadSearch);
const UserMenu = lazy(async () => ({ default: (await import("./user-menu.tsx")).UserMenu }));
const KeyHelp = lazy(async () => ({ default: (await import("./key-help.tsx")).KeyHelp }));

interface TopBarProps {
  readonly isMenuOpen: boolean;
  readonly onMenu: () => void;
}

export function TopBar({ isMenuOpen, onMenu }: TopBarProps) {
  const [overlay, setOverlay] = useState<"search" | "keys" | undefined>();
  useKeys([
    { key: "Control+k", does: "searches, and goes anywhere", inFields: true, run: () => setOverlay("search") },
    { key: "?", does: "lists the keys", run: () => setOverlay("keys") },
    { key: "/", does: "filters this page", run: focusFilter },
  ]);
  // Whoever presses the key goes on typing: the box must be there at once. The page itself comes first.
  useEffect(() => {
    // While the server is away it cannot be had; who opens it then has it loaded then.
    const timer = window.setTimeout(() => void loadSearch().catch(() => undefined), 1_000);
    return () => window.clearTimeout(timer);
  }, []);
  const close = () => setOverlay(undefined);
  return (
    <header className={classes.bar}>
      <UnstyledButton className={classes.menu} aria-expanded={isMenuOpen} aria-label="Pages" onClick={onMenu}>
        ☰
      </UnstyledButton>
      <Link to="/" className={classes.name}>
        Millwright
      </Link>
      <Button
        className={classes.search ?? ""}
        aria-label="Search … Ctrl K"
        variant="default"
        size="xs"
        onClick={() => setOverlay("search")}
      >
        <span className={classes.searchText}>Search …</span>
        <Kbd size="xs" aria-hidden>
          Ctrl K
        </Kbd>
      </Button>
      <LiveIndicator />
      <ServerTime />
      <User onKeys={() => setOverlay("keys")} />
      <Suspense fallback={null}>
        {overlay === "search" && <Search onClose={close} />}
        {overlay === "keys" && <KeyHelp onClose={close} />}
      </Suspense>
    </header>
  );
}

function focusFilter(): void {
  const field = document.querySelector<HTMLInputElement>("[data-filter]");
  field?.focus();
  field?.select();
}

const clock = new Intl.DateTimeFormat("sv-SE", { timeStyle: "medium" });

/** The server's, by which all ages are told. */
function ServerTime() {
  return (
    <span className={classes.time} title="The server's time">
      {clock.format(useNow())}
    </span>
  );
}

/** What is behind the name loads when somebody presses it. */
function User({ onKeys }: { readonly onKeys: () => void }) {
  const { name } = useMe();
  const [isWanted, setWanted] = useState(false);
  const label = name === "" ? "nobody signed in" : name;
  const closed = (
    <UnstyledButton className={classes.user} aria-haspopup="menu" onClick={() => setWanted(true)}>
      {label}
    </UnstyledButton>
  );
  if (!isWanted) return closed;
  return (
    <Suspense fallback={closed}>
      <UserMenu onKeys={onKeys}>{label}</UserMenu>
    </Suspense>
  );
}
