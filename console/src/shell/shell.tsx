import { Code, ConnectError } from "@connectrpc/connect";
import { useQuery } from "@tanstack/react-query";
import { Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { ME_QUERY } from "../api/session.ts";
import { onSignedOut } from "../api/transport.ts";
import { LiveProvider, useLive } from "../live/live.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { listenToKeys } from "./keys.ts";
import { MeProvider } from "./me.tsx";
import { Navigation } from "./navigation.tsx";
import classes from "./shell.module.css";
import { TopBar } from "./top-bar.tsx";

/** Around every page: who reads it, where else to go, and whether what it shows is true. */
export function Shell() {
  const { data: me, error } = useQuery(ME_QUERY);
  const leave = useSignInWhenAsked();
  const isUnknown = error !== null && ConnectError.from(error).code === Code.Unauthenticated;
  useEffect(() => {
    if (isUnknown) leave();
  }, [isUnknown, leave]);
  if (error !== null && !isUnknown) return <ErrorNote error={error} />;
  if (me === undefined || isUnknown) return null;
  return (
    <MeProvider value={me}>
      <LiveProvider>
        <Frame />
      </LiveProvider>
    </MeProvider>
  );
}

function Frame() {
  const { state, notice } = useLive();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const { pathname } = useLocation();
  useEffect(listenToKeys, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the menu
  useEffect(() => setMenuOpen(false), [pathname]);
  return (
    <div className={classes.shell} data-live={state}>
      <a className={classes.skip} href="#page">
        Skip to the page
      </a>
      <TopBar isMenuOpen={isMenuOpen} onMenu={() => setMenuOpen(!isMenuOpen)} />
      <Navigation isOpen={isMenuOpen} />
      <main id="page" className={classes.page} tabIndex={-1}>
        {state === "lost" && (
          <p role="status" className={classes.lost}>
            The connection to the server is lost. What is shown may be old. Trying again …
          </p>
        )}
        {notice !== "" && <p role="status">{notice}</p>}
        <div className={classes.content}>
          <Outlet />
        </div>
      </main>
    </div>
  );
}

/** To the sign-in, and from there back to where somebody was. */
function useSignInWhenAsked(): () => void {
  const navigate = useNavigate();
  const [leave] = useState(() => () => {
    const { pathname, search } = window.location;
    if (pathname === "/sign-in") return;
    void navigate({ to: "/sign-in", search: { to: `${pathname}${search}` } as never, replace: true });
  });
  useEffect(() => onSignedOut(leave), [leave]);
  return leave;
}
