import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Token, TokenService } from "../../../../contract/millwright/v1/token_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import { Age } from "../../parts/age.tsx";

const columns: readonly Column<Token>[] = [
  { title: "Token", width: "minmax(120px, 1.4fr)", sort: "name", cell: ({ name }) => name },
  { title: "Status", width: "110px", cell: ({ revokedAt }) => (revokedAt ? "revoked" : "") },
  { title: "Roles", width: "minmax(110px, 1.4fr)", cell: ({ roles }) => roles.join(", ") },
  { title: "Used", width: "92px", isNumber: true, from: "tablet", cell: ({ lastUsedAt }) => <Age at={lastUsedAt} /> },
  { title: "Made", width: "92px", isNumber: true, from: "tablet", cell: ({ createdAt }) => <Age at={createdAt} /> },
  {
    title: "Only for",
    width: "minmax(80px, 1fr)",
    from: "desktop",
    cell: ({ scope }) => scope?.methods.join(", "),
  },
  {
    title: "Good until",
    width: "150px",
    from: "tablet",
    cell: ({ validUntil }) => validUntil && timestampDate(validUntil).toISOString().slice(0, 10),
  },
];

/** Who calls with a token, and how long it is good. */
export const Tokens = () => (
  <ListPage
    title="Tokens"
    noun="token"
    kind="token"
    columns={columns}
    read={async (request, signal) => {
      const { tokens, nextPageToken, totalSize } = await clientOf(TokenService).listTokens(request, { signal });
      return { items: tokens, nextPageToken, totalSize };
    }}
    idOf={({ id }) => id}
    idField="id"
    example="status=valid AND role=admin"
    presets={[{ label: "Valid", filter: "status=valid" }]}
    cli="millwright token list"
    method={TokenService.method.listTokens}
    empty="There are no tokens."
    opens={false}
  />
);
