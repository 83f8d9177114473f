import { AppError } from "../../kernel/errors.ts";
import type { Filter } from "../../kernel/filter/filter.ts";
import type { Listing } from "../../store/postgres/listing.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { deletedClauses } from "../device/standing.ts";

/** As much of a list as overviews need. */
export type KindListing = Pick<Listing<string, never>, "name" | "fields" | "tally" | "dwell">;
/** By kind; kinds without a list are not in it. */
export type Listings = ReadonlyMap<string, KindListing>;

export interface OverviewDeps extends ServiceDeps {
  readonly listings: Listings;
}

/** The field that has the same value in SQL, such as the state: each list has its own word for it. */
const fieldAt = ({ fields }: Pick<KindListing, "fields">, sql: string): string | undefined =>
  Object.entries(fields).find(([, field]) => field.sql === sql)?.[0];

export const stateFieldOf = (listing: KindListing): string | undefined => fieldAt(listing, "t.state");
export const sinceFieldOf = (listing: KindListing): string | undefined => fieldAt(listing, "t.state_since");

/** Where the rack of a thing is. */
export function rackSqlOf(listing: KindListing | undefined): string | undefined {
  const sql = (listing?.fields.rack_id ?? listing?.fields.rack)?.sql;
  return typeof sql === "string" ? sql : undefined;
}

/** What lists leave out unless the filter speaks of it. */
export const asListed = ({ fields }: KindListing, filter: Filter): Filter =>
  "deleted" in fields && "deleted_at" in fields ? [...deletedClauses(undefined, filter), ...filter] : filter;

/** @throws AppError invalid_argument that lists the kinds that there are. */
export function listingOf({ listings }: OverviewDeps, kind: string): KindListing {
  const listing = listings.get(kind);
  if (listing) return listing;
  const known = [...listings.keys()].sort().join(", ");
  throw new AppError("invalid_argument", `kind: ${JSON.stringify(kind.slice(0, 80))} is none of ${known}`, {
    field: "kind",
  });
}
