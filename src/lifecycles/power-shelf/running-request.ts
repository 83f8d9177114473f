import type { PowerShelf } from "./power-shelf.ts";

/** The id of the request that the shelf is carrying out; a newer one may wait behind it. */
export function runningRequestOf({ state: { request } }: Pick<PowerShelf, "state">): string | undefined {
  if (typeof request !== "object" || request === null || Array.isArray(request)) return undefined;
  return "id" in request && typeof request.id === "string" ? request.id : undefined;
}
