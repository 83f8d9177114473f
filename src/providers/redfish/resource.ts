import { isResource, listAt, type Resource, textAt } from "../transport/device-json.ts";

export { isResource, listAt, numberAt, type Resource, textAt, valueAt } from "../transport/device-json.ts";

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
