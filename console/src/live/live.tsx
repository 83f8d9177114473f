import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import type { Event } from "../../../contract/millwright/v1/event_pb.js";
import { LiveEvents, type LiveState } from "./live-events.ts";
import { Refresh } from "./refresh.ts";

interface Live {
  readonly state: LiveState;
  /** What the reader should know of it, once; empty most of the time. */
  readonly notice: string;
  /** Calls back with each event as it happens. */
  follow(listener: (event: Event) => void): () => void;
}

const LiveContext = createContext<Live>({ state: "connecting", notice: "", follow: () => () => undefined });

/** What happens now: one watch for the whole tab. */
export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const client = useQueryClient();
  const [state, setState] = useState<LiveState>("connecting");
  const [notice, setNotice] = useState("");
  const followers = useMemo(() => new Set<(event: Event) => void>(), []);

  useEffect(() => {
    const refresh = new Refresh(client);
    const live = new LiveEvents({
      changed: setState,
      happened(event) {
        refresh.note(event);
        for (const follower of followers) follower(event);
      },
      missed(why) {
        if (why === "cursor_expired") setNotice("Events were missed. Everything on this page was read again.");
        void client.invalidateQueries();
      },
    });
    live.start();
    return () => {
      live.stop();
      refresh.stop();
    };
  }, [client, followers]);

  const value = useMemo<Live>(
    () => ({
      state,
      notice,
      follow(listener) {
        followers.add(listener);
        return () => followers.delete(listener);
      },
    }),
    [state, notice, followers],
  );
  return <LiveContext value={value}>{children}</LiveContext>;
}

export const useLive = (): Live => useContext(LiveContext);

/** Calls back with each event that happens while the component is there. */
export function useEvents(listener: (event: Event) => void): void {
  const { follow } = useLive();
  useEffect(() => follow(listener), [follow, listener]);
}
