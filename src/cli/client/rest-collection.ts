import type { RestCall } from "./rest.ts";
import type { Session } from "./session.ts";

const PAGE = 1_000;

/** Everything that a list of the REST API has, page by page. */
export async function listAll<T>(session: Session, path: string, query: RestCall["query"] = {}): Promise<T[]> {
  const items: T[] = [];
  for (;;) {
    const page = (await session.rest({
      method: "GET",
      path,
      query: { ...query, limit: PAGE, offset: items.length },
    })) as { readonly data: readonly T[]; readonly total: number };
    items.push(...page.data);
    if (page.data.length === 0 || items.length >= page.total) return items;
  }
}

/** A list that has places: as much as is wanted of it, page after page, and how many there are in all. */
export async function listPlaces<T>(
  session: Session,
  path: string,
  query: RestCall["query"],
  most = Number.POSITIVE_INFINITY,
): Promise<{ readonly items: readonly T[]; readonly total: number }> {
  const items: T[] = [];
  let total = 0;
  let token: string | undefined;
  do {
    const limit = Math.min(PAGE, most);
    const page = (await session.rest({ method: "GET", path, query: { ...query, limit, page_token: token } })) as {
      readonly data: readonly T[];
      readonly total: number;
      readonly next_page_token?: string;
    };
    items.push(...page.data);
    total = page.total;
    token = page.next_page_token;
  } while (token !== undefined && items.length < most);
  return { items: items.slice(0, most), total };
}

/** What the REST API has below one path: all of it, and each item by its id. */
export function restCollection<T>(path: string) {
  const at = (id: string): string => `${path}/${encodeURIComponent(id)}`;
  const dataOf = async (answer: Promise<unknown>): Promise<T> => ((await answer) as { readonly data: T }).data;
  return {
    at,
    list: (session: Session, query?: RestCall["query"]) => listAll<T>(session, path, query),
    get: (session: Session, id: string) => dataOf(session.rest({ method: "GET", path: at(id) })),
    create: (session: Session, body: unknown) => dataOf(session.rest({ method: "POST", path, body })),
    change: (session: Session, id: string, method: "PATCH" | "PUT", body: unknown) =>
      dataOf(session.rest({ method, path: at(id), body })),
    remove: (session: Session, id: string) => session.rest({ method: "DELETE", path: at(id) }),
  };
}
