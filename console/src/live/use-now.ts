import { useSyncExternalStore } from "react";
import { serverNow } from "../api/server-clock.ts";

const listeners = new Set<() => void>();
let now = Math.floor(serverNow() / 1_000) * 1_000;
let timer: number | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= window.setInterval(tick, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    window.clearInterval(timer);
    timer = undefined;
  };
}

function tick(): void {
  now = serverNow();
  for (const listener of listeners) listener();
}

/** The server's time, renewed each second: one timer for all ages on the page. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now);
