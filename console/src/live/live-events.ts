import { Code, ConnectError } from "@connectrpc/connect";
import type { Event } from "../../../contract/millwright/v1/event_pb.js";
import { WatchService } from "../../../contract/millwright/v1/watch_pb.js";
import { noteServerTime } from "../api/server-clock.ts";
import { clientOf } from "../api/services.ts";

/** `live`: events come as they happen. `lost`: what is shown may be old. `paused`: nobody looks. `off`: the caller may not watch. */
export type LiveState = "connecting" | "live" | "lost" | "paused" | "off";

export interface LiveListeners {
  changed(state: LiveState): void;
  happened(event: Event): void;
  /** What is shown may have missed something: all of it has to be read again. */
  missed(why: "reconnected" | "cursor_expired"): void;
}

/** A lost connection must show within five seconds: the beat and its patience together are less. */
const BEAT_MS = 2_000;
const BEAT_PATIENCE_MS = 2_400;
const LONGEST_PAUSE_MS = 4_000;
/** A watch that is refused is refused sooner. */
const SETTLED_MS = 300;
/** Tabs that are only passed through need not be cut off. */
const HIDDEN_FOR_MS = 5_000;

/**
 * The one watch of a tab. It goes on after the last cursor that it received, so that a break loses nothing; it is closed while the tab is
 * hidden, since browsers open only six connections to a server, for all tabs together.
 */
export class LiveEvents {
  readonly #listeners: LiveListeners;
  #state: LiveState = "connecting";
  #cursor = "";
  #ended = new AbortController();
  #hidden: number | undefined;
  #beat: number | undefined;
  #wasLost = false;
  /** Since when the present watch has been open without an error; undefined while there is none. */
  #openSince: number | undefined;

  constructor(listeners: LiveListeners) {
    this.#listeners = listeners;
  }

  start(): void {
    document.addEventListener("visibilitychange", this.#visibilityChanged);
    void this.#follow(this.#ended.signal);
    this.#beat = window.setInterval(() => void this.#checkServer(), BEAT_MS);
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.#visibilityChanged);
    window.clearInterval(this.#beat);
    window.clearTimeout(this.#hidden);
    this.#ended.abort();
  }

  #visibilityChanged = (): void => {
    window.clearTimeout(this.#hidden);
    if (document.hidden) {
      this.#hidden = window.setTimeout(() => {
        this.#ended.abort();
        this.#become("paused");
      }, HIDDEN_FOR_MS);
    } else if (this.#state === "paused") {
      this.#again();
    }
  };

  #again(): void {
    this.#ended.abort();
    this.#ended = new AbortController();
    this.#become("connecting");
    void this.#follow(this.#ended.signal);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for (let pause = 250; !signal.aborted; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        await this.#watch(signal, () => {
          pause = 250;
        });
      } catch (error) {
        if (signal.aborted) return;
        const { code } = ConnectError.from(error);
        if (code === Code.Unauthenticated) return;
        if (code === Code.PermissionDenied) return this.#become("off");
        if (code === Code.FailedPrecondition && this.#cursor !== "") {
          this.#cursor = "";
          this.#listeners.missed("cursor_expired");
          continue;
        }
      }
      if (signal.aborted) return;
      this.#become("lost");
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  async #watch(signal: AbortSignal, opened: () => void): Promise<void> {
    const from = this.#cursor === "" ? { fromNow: true } : { fromCursor: this.#cursor };
    const onHeader = () => {
      opened();
      this.#become("live");
    };
    this.#openSince = performance.now();
    try {
      for await (const { message } of clientOf(WatchService).watch(from, { signal, onHeader })) {
        onHeader();
        if (message.case === undefined) continue;
        this.#cursor = message.value.cursor;
        if (message.case === "event") this.#listeners.happened(message.value);
      }
    } finally {
      this.#openSince = undefined;
    }
  }

  /** A connection that dies without a word ends no stream: the server has to answer something else now and then. */
  async #checkServer(): Promise<void> {
    if (document.hidden || this.#state === "paused" || this.#state === "off") return;
    const isThere = await fetch("/healthz", { signal: AbortSignal.timeout(BEAT_PATIENCE_MS), cache: "no-store" }).then(
      (answer) => {
        noteServerTime(answer.headers.get("date"));
        return answer.ok;
      },
      () => false,
    );
    if (!isThere && this.#state !== "lost") {
      this.#again();
      this.#become("lost");
    } else if (isThere && this.#isResumed()) this.#become("live");
  }

  /** A watch that goes on after a cursor says nothing until something happens: that it is still open has to do. */
  #isResumed(): boolean {
    return this.#cursor !== "" && this.#openSince !== undefined && performance.now() - this.#openSince > SETTLED_MS;
  }

  #become(state: LiveState): void {
    if (state === this.#state) return;
    if (state === "lost") this.#wasLost = true;
    this.#state = state;
    this.#listeners.changed(state);
    if (state === "live" && this.#wasLost) {
      this.#wasLost = false;
      this.#listeners.missed("reconnected");
    }
  }
}
