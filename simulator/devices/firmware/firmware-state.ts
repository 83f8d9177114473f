import type { FirmwareImage } from "./firmware-image.ts";

/** When a component works with what was flashed: by itself, or only after somebody did something. */
export type TakesEffect = "at_once" | "manager_restart" | "reset" | "power_cycle";

/** A component whose firmware can be replaced, as delivered. The first one of a device is its management controller. */
export interface ComponentSpec {
  /** Its name in the firmware inventory. */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly takesEffect: TakesEffect;
  /** The path of what it is firmware of. */
  readonly of: string;
}

/** How a flash that begins now goes on. */
export type FlashConduct =
  | { readonly is: "honest" }
  /** Goes no further than this for as long as the fault rule is there. */
  | { readonly is: "stuck"; readonly percent: number; readonly faultId: string }
  /** Completed, and nothing was written. */
  | { readonly is: "lying" }
  | { readonly is: "failing" };

export interface UpdateConduct {
  readonly flash: FlashConduct;
  /** Takes what is for another model. */
  readonly acceptsWrongImage: boolean;
  /** Real milliseconds for which nothing answers once the flash is over, unless the fault rule goes before. */
  readonly silentAfterMs: number;
  readonly silentBy: string | null;
}

export const UPDATE_WAYS = ["simple", "multipart", "push"] as const;
export type UpdateWay = (typeof UPDATE_WAYS)[number];

/** One update: a task of the controller, whether it got as far as writing or not. Times are simulated. */
export interface Flash {
  readonly task: number;
  readonly way: UpdateWay;
  /** Of the image; null where none could be read. */
  readonly component: string | null;
  readonly from: string | null;
  readonly to: string | null;
  readonly bytes: number;
  readonly digest: string | null;
  /** What the caller named, as paths. */
  readonly targets: readonly string[];
  readonly begunAt: number;
  readonly dueAt: number;
  readonly conduct: FlashConduct;
  readonly silentAfterMs: number;
  /** The fault rule that it is silent by. */
  readonly silentBy: string | null;
  /** The image is for another model: nobody knows what the component runs afterwards. */
  readonly isWrong: boolean;
  /** Whether the component was written to. */
  readonly wrote: boolean;
  readonly endedAt: number | null;
  readonly outcome: "running" | "completed" | "failed";
  /** Why it failed. */
  readonly why: string | null;
}

interface Installed {
  /** Null: nobody knows. */
  readonly version: string | null;
  readonly before: string | null;
  /** In simulated time, for controllers that show it late. */
  readonly since: number;
}

interface Staged {
  readonly version: string | null;
  /** Real time in milliseconds. */
  readonly at: number;
  readonly needs: Exclude<TakesEffect, "at_once">;
}

export interface FirmwareState {
  /** In simulated time. */
  readonly deliveredAt: number;
  readonly tasks: number;
  readonly flashes: readonly Flash[];
  readonly installed: Readonly<Record<string, Installed>>;
  readonly staged: Readonly<Record<string, Staged>>;
  /** How often it has made itself another certificate. */
  readonly certificate: number;
  /** Real time in milliseconds until which nothing answers. */
  readonly silentUntil: number;
  /** For as long as this fault rule is there; null: whatever rules there are. */
  readonly silentBy: string | null;
  /** Simulated time until which every account is refused. */
  readonly refusesUntil: number;
  readonly pushTargets: readonly string[];
  readonly pushTargetsBusy: boolean;
}

export const NO_FLASHES: FirmwareState = {
  deliveredAt: 0,
  tasks: 0,
  flashes: [],
  installed: {},
  staged: {},
  certificate: 0,
  silentUntil: 0,
  silentBy: null,
  refusesUntil: 0,
  pushTargets: [],
  pushTargetsBusy: false,
};

/** What a caller wants written. */
export interface UpdateOrder {
  readonly way: UpdateWay;
  readonly targets: readonly string[];
  /** The image, or why there is none. */
  readonly image: FirmwareImage | { readonly why: string };
}
