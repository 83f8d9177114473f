import type { JsonValue } from "@bufbuild/protobuf";
import type { Session } from "../../client/session.ts";
import { printLine } from "../../terminal/printing.ts";
import { readRacks } from "../rack/list.ts";
import type { Change } from "./difference.ts";
import type { Row } from "./sections.ts";
import type { SectionName } from "./site-file.ts";

/** What of a site decides which devices its racks have: profiles whose counts change, and racks whose devices or profile do. */
export interface Affected {
  readonly profiles: ReadonlySet<string>;
  readonly racks: ReadonlySet<string>;
}

export interface SectionChange {
  readonly section: SectionName;
  readonly change: Change;
  /** As the server has it; absent: it does not. */
  readonly known: Row | undefined;
}

const PARTS = ["compute", "switches", "power_shelves"] as const;
const MOST_NAMED = 3;

export function affectedBy(changes: readonly SectionChange[]): Affected {
  const profiles = changes.filter(changesCounts).map(({ known }) => known?.key ?? "");
  return { profiles: new Set(profiles), racks: new Set(changes.flatMap(racksOf)) };
}

/** Only counts make a rack another one; its hardware type and names do not. */
function changesCounts({ section, change, known }: SectionChange): boolean {
  if (section !== "rack_profiles" || change.action !== "update" || !known) return false;
  const { says } = change.wanted;
  return PARTS.some((part) => part in says && at(says[part], "count") !== at(known.says[part], "count"));
}

function racksOf({ section, change, known }: SectionChange): readonly string[] {
  const wanted = change.action === "remove" ? undefined : change.wanted;
  if (section === "expected_racks")
    return wanted && known && at(wanted.says.rack_profile_id, "id") !== at(known.says.rack_profile_id, "id")
      ? [known.key]
      : [];
  const placeOf = (row: Row | undefined) =>
    section === "machines"
      ? at(row?.says.spec, "rack")
      : section === "rack_profiles"
        ? ""
        : at(row?.says.rack_id, "id");
  const [before, after] = [placeOf(known), wanted ? placeOf(wanted) : ""];
  return before === after ? [] : [before, after].filter((rack) => rack !== "");
}

/** The text at a field; empty where there is none. */
function at(value: JsonValue | undefined, field: string): string {
  const inner = typeof value === "object" && value !== null && !Array.isArray(value) ? value[field] : undefined;
  return inner === undefined || inner === null ? "" : String(inner);
}

const fewOf = (ids: readonly string[]): string =>
  `${ids.slice(0, MOST_NAMED).join(", ")}${ids.length > MOST_NAMED ? ` and ${ids.length - MOST_NAMED} more` : ""}`;

/** Tells how many racks are discovered and maintained again, since that flashes devices; nothing where none is. */
export async function tellAffected(session: Session, { profiles, racks }: Affected): Promise<void> {
  if (profiles.size + racks.size === 0) return;
  const { items } = await readRacks(session, { orderBy: "id" });
  const again = items
    .filter(({ state }) => state !== "created" && state !== "deleting")
    .filter(({ id, profile }) => profiles.has(profile) || racks.has(id))
    .map(({ id }) => id);
  if (again.length === 0) return;
  const which = again.length === 1 ? "1 rack is" : `${again.length} racks are`;
  printLine(
    session.terminal.stderr,
    `${which} discovered and maintained again by these changes: ${fewOf(again)} (rack.maintenance_at_once says how many at a time)`,
  );
}
