/**
 * Reading JSON that a BMC wrote. Nothing here throws and nothing is believed: a member that is missing, or is not what it
 * should be, is `undefined`, and the caller decides what that means.
 */
export type Resource = Readonly<Record<string, unknown>>;

export const isResource = (value: unknown): value is Resource =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value at a path of members; own members only, so that "constructor" is not found on every object. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let here = value;
  for (const member of path) {
    if (!isResource(here) || !Object.hasOwn(here, member)) return undefined;
    here = here[member];
  }
  return here;
}

const LONGEST_TEXT = 1_024;

/** Text without surrounding blanks; empty text counts as missing, as BMCs write "" for what they do not know. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = valueAt(value, ...path);
  if (typeof found !== "string") return undefined;
  const text = found.trim().slice(0, LONGEST_TEXT);
  return text === "" ? undefined : text;
}

export function numberAt(value: unknown, ...path: readonly string[]): number | undefined {
  const found = valueAt(value, ...path);
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = valueAt(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** A link is followed only within this BMC's Redfish tree: a BMC cannot send our credentials elsewhere. */
export const isLocalPath = (path: string): boolean =>
  /^\/redfish\/[\x21-\x7e]*$/.test(path) && path.length <= 1_000 && !path.includes("/../") && !path.includes("#");

export function linkAt(value: unknown, ...path: readonly string[]): string | undefined {
  const link = textAt(value, ...path, "@odata.id");
  return link !== undefined && isLocalPath(link) ? link : undefined;
}

/** The members of a collection, as links and, where the BMC wrote them out in place, with their contents. */
export function membersOf(
  collection: unknown,
): readonly { readonly path: string; readonly resource: Resource | undefined }[] {
  return listAt(collection, "Members").flatMap((member) => {
    const path = linkAt(member);
    if (path === undefined || !isResource(member)) return [];
    return [{ path, resource: Object.keys(member).length > 1 ? member : undefined }];
  });
}

export const lastSegment = (path: string): string => path.split("/").findLast((segment) => segment !== "") ?? "";

/** Redfish's three words for health. */
export function healthAt(value: unknown, ...path: readonly string[]): "ok" | "warning" | "critical" | undefined {
  switch (textAt(value, ...path)?.toLowerCase()) {
    case "ok":
      return "ok";
    case "warning":
      return "warning";
    case "critical":
      return "critical";
    default:
      return undefined;
  }
}
