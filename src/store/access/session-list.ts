import { defineFields } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { SESSION_COLUMNS, SESSIONS, type SessionRow } from "./sessions.ts";

const STANDINGS = ["valid", "expired", "ended"] as const;
const ENDED = "least(s.ended_at, t.revoked_at)";
const STANDING = `(case when ${ENDED} is not null then 'ended' when s.expires_at <= now() then 'expired' else 'valid' end)`;

function standingOf({ endedAt, expiresAt }: SessionRow, now: Date): (typeof STANDINGS)[number] {
  if (endedAt !== null) return "ended";
  return expiresAt <= now ? "expired" : "valid";
}

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<SessionRow>()({
  id:         { type: "text", sql: "s.id", sort: "set", doc: "The session's id.", of: ({ id }) => id },
  name:       { type: "text", sql: "s.name", sort: "set", doc: "Who signed in.", of: ({ name }) => name },
  role:       { type: "tags", sql: "s.roles", doc: "One of its roles.", of: ({ roles }) => roles },
  credential: { type: ["token", "configured", "jwt", "certificate"], sql: "s.credential_kind", doc: "What was shown at the sign-in.", of: ({ credentialKind }) => credentialKind },
  status:     { type: STANDINGS, sql: STANDING, doc: "Whether calls with it are accepted.", of: (session, _, now) => standingOf(session, now) },
  address:    { type: "text", sql: "s.address", doc: "From where somebody signed in.", of: ({ address }) => address },
  created_at: { type: "time", sql: "s.created_at", sort: "set", doc: "When somebody signed in.", of: ({ createdAt }) => createdAt },
  expires_at: { type: "time", sql: "s.expires_at", sort: "set", doc: "When it ends by itself.", of: ({ expiresAt }) => expiresAt },
  ended_at:   { type: "time", sql: ENDED, sort: "nullable", doc: "When it was ended: by signing out, by an administrator, or with its token.", of: ({ endedAt }) => endedAt },
});

export const sessionListing = createListing<keyof typeof FIELDS & string, SessionRow, SessionRow>({
  name: "sessions",
  fields: FIELDS,
  id: "id",
  order: [
    { field: "created_at", descending: true },
    { field: "id", descending: false },
  ],
  columns: SESSION_COLUMNS,
  from: SESSIONS,
  parse: (row) => row,
});
