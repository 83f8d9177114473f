import { PAGES } from "./pages.ts";

/** The address of a thing's page; undefined where there is none for its kind. */
export function pathOfThing(kind: string, id: string): string | undefined {
  const page = PAGES.find(({ thing }) => thing === kind);
  return page?.path.replace("$id", encodeURIComponent(id));
}
