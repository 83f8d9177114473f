/** One answer of a list: what is on the page, and where the next one begins; empty on the last. */
interface Answered {
  readonly nextPageToken: string;
}

/** Everything that a list has, page by page, or as much as is wanted of it. */
export async function readPages<A extends Answered, T>(
  ask: (pageToken: string) => Promise<A>,
  itemsOf: (page: A) => readonly T[],
  most = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const items: T[] = [];
  let pageToken = "";
  do {
    const page = await ask(pageToken);
    items.push(...itemsOf(page));
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && items.length < most);
  return items.slice(0, most);
}
