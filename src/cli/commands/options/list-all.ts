import type { RestCall } from "../../client/rest.ts";
import type { Session } from "../../client/session.ts";

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
