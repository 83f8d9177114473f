import { NO_LIMITS } from "../../kernel/access/scope.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { type MaxAge, TOKEN_COLUMNS, TOKEN_ROLES, type TokenRow } from "./tokens.ts";

/** With when it ends; null: never. */
export type ListedToken = TokenRow & { readonly validUntil: Date | null };

const STANDINGS = ["valid", "expired", "revoked"] as const;
const STANDING = `(case when t.revoked_at is not null then 'revoked' when t.valid_until <= now() then 'expired' else 'valid' end)`;

function standingOf({ revokedAt, validUntil }: ListedToken, now: Date): (typeof STANDINGS)[number] {
  if (revokedAt !== null) return "revoked";
  return validUntil !== null && validUntil <= now ? "expired" : "valid";
}

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<ListedToken>()({
  id:           { type: "text", sql: "t.id", sort: "set", doc: "The token's id.", of: ({ id }) => id },
  name:         { type: "text", sql: "t.name", sort: "set", doc: "Who calls with it.", of: ({ name }) => name },
  role:         { type: "tags", sql: TOKEN_ROLES, doc: "One of its roles.", of: ({ roles }) => roles },
  scoped:       { type: ["true", "false"], sql: "(case when t.scope is null then 'false' else 'true' end)", doc: "It is limited to some methods or things.", of: ({ scope }) => String(scope !== null) },
  status:       { type: STANDINGS, sql: STANDING, doc: "Whether calls with it are accepted.", of: (token, _, now) => standingOf(token, now) },
  created_by:   { type: "text", sql: "t.created_by", sort: "set", doc: "Who created it.", of: ({ createdBy }) => createdBy },
  created_at:   { type: "time", sql: "t.created_at", sort: "set", doc: "When it was created.", of: ({ createdAt }) => createdAt },
  expires_at:   { type: "time", sql: "t.expires_at", sort: "nullable", doc: "The end that it was given; empty where it was given none.", of: ({ expiresAt }) => expiresAt },
  valid_until:  { type: "time", sql: "t.valid_until", sort: "nullable", doc: "When it stops working: at its end, or at auth.token_max_age if that is earlier.", of: ({ validUntil }) => validUntil },
  revoked_at:   { type: "time", sql: "t.revoked_at", sort: "nullable", doc: "When it was revoked.", of: ({ revokedAt }) => revokedAt },
  last_used_at: { type: "time", sql: "t.last_used_at", sort: "nullable", doc: "About when it was last used, to the minute.", of: ({ lastUsedAt }) => lastUsedAt },
});

export type TokenField = keyof typeof FIELDS & string;

/** The tokens that people made. Those of agents belong to their nodes. */
export const tokenListingFor = (maxAge: MaxAge) =>
  createListing<TokenField, ListedToken, ListedToken>({
    name: "tokens",
    fields: FIELDS,
    id: "id",
    order: [
      { field: "name", descending: false },
      { field: "id", descending: false },
    ],
    columns: `${TOKEN_COLUMNS}, valid_until as "validUntil"`,
    from: `(select *, least(expires_at, ${endByAge(maxAge)}) as valid_until from tokens where bound_to is null) t`,
    // One from before tokens could be limited to things has no such limits.
    parse: (row) => ({ ...row, scope: row.scope && { ...NO_LIMITS, ...row.scope } }),
  });

const endByAge = (maxAge: MaxAge): string =>
  maxAge === null
    ? "null"
    : `case when not ageless then aged_from + ${Math.round(maxAge)} * interval '1 millisecond' end`;

/** Where tokens grow as old as they like. */
export const tokenListing = tokenListingFor(null);
