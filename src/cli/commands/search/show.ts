import { type SearchHit, SearchHitSchema, SearchService } from "../../../../contract/millwright/v1/search_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import { kindOf } from "../event/kind.ts";

export interface SearchOptions {
  readonly kind?: readonly string[];
  readonly limit: number;
}

const columns: readonly Column<SearchHit>[] = [
  { title: "KIND", cell: ({ kind }) => kind },
  { title: "ID", cell: ({ id }) => id, tone: () => "bold" },
  { title: "NAME", cell: ({ name }) => name },
  { title: "STATE", cell: ({ state }) => state },
  { title: "RACK", cell: ({ rackId }) => rackId },
  { title: "FOUND", cell: ({ field, value }) => `${field} ${value}` },
];

export async function searchThings(session: Session, query: string, options: SearchOptions): Promise<undefined> {
  const { kind = [], limit } = options;
  const client = await session.client(SearchService);
  const { hits, cut } = await client.search({ query, kinds: kind.map(kindOf), limit }, { signal: session.signal });
  await printList(session, { items: hits, columns, json: (hit) => jsonOf(SearchHitSchema, hit) }, "Nothing is found.");
  if (cut && session.style().format === "table")
    session.terminal.stderr.write("There is more: search for more of it.\n");
}
