import type { ComponentType } from "react";

/** A page of the console: its folder has one in `page.ts`, and `pages.ts` lists it. Everything else follows. */
export interface Page {
  /** As in the router: `/machines/$id`. */
  readonly path: string;
  readonly title: string;
  /** Its place in the navigation; absent: it is reached from others. */
  readonly nav?: { readonly group: "fleet" | "work" | "system" };
  /** The kind of thing, as in its lifecycle, that `$id` in the path names: links to such things lead here. */
  readonly thing?: string;
  /** The kind of thing that it lists, by the API's filter and order in its address: counts and groups of such things lead here. */
  readonly lists?: string;
  /** A method that its reader must be allowed to call; without it the page is not offered. */
  readonly needs?: string;
  /** Loads with the page alone. */
  readonly load: () => Promise<ComponentType>;
}

export const definePage = (page: Page): Page => page;
