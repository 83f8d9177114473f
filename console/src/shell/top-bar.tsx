import { Button, Kbd, Menu, UnstyledButton, useMantineColorScheme } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { signOut } from "../api/session.ts";
import { useNow } from "../live/use-now.ts";
import { useKeys } from "./keys.ts";
import { LiveIndicator } from "./live-indicator.tsx";
import { useMe } from "./me.tsx";
import classes from "./top-bar.module.css";

const loadSearch = async () => ({ default: (await import("../search/search.tsx")).Search });
const Search = lazy(loadSearch);
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
      <UserMenu onKeys={() => setOverlay("keys")} />
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

const NEXT_SCHEME = { auto: "light", light: "dark", dark: "auto" } as const;
const SCHEME_WORDS = { auto: "as the system", light: "light", dark: "dark" } as const;

function UserMenu({ onKeys }: { readonly onKeys: () => void }) {
  const { name, roles } = useMe();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const navigate = useNavigate();
  const client = useQueryClient();
  const leave = async () => {
    await signOut();
    client.clear();
    await navigate({ to: "/sign-in" });
  };
  return (
    <Menu position="bottom-end" width={240} withinPortal>
      <Menu.Target>
        <Button variant="subtle" color="gray" size="xs" className={classes.user ?? ""}>
          {name === "" ? "nobody signed in" : name}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{roles.length === 0 ? "no role" : `role ${roles[0]}`}</Menu.Label>
        <Menu.Item closeMenuOnClick={false} onClick={() => setColorScheme(NEXT_SCHEME[colorScheme])}>
          Colours: {SCHEME_WORDS[colorScheme]}
        </Menu.Item>
        <Menu.Item onClick={onKeys}>Keys</Menu.Item>
        <Menu.Item component="a" href="/api/v1/docs">
          REST reference
        </Menu.Item>
        {name !== "" && <Menu.Item onClick={() => void leave()}>Sign out</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  );
}
