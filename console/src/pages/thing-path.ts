import { PAGES } from "./pages.ts";

/** The address of the list of things of a kind, filtered as the API filters it; undefined where there is none. */
export function pathOfList(kind: string, filter: string): string | undefined {
  const page = PAGES.find(({ lists }) => lists === kind);
  return page && (filter === "" ? page.path : `${page.path}?${new URLSearchParams({ filter })}`);
}

/** The address of a thing's page; undefined where there is none for its kind. */
export function pathOfThing(kind: string, id: string): string | undefined {
  const page = PAGES.find(({ thing }) => thing === kind);
  return page?.path.replace("$id", encodeURIComponent(id));
}
