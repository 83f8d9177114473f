import type { InstallOrder } from "../../capabilities/imaging.ts";

/** What the installer is to know travels in the address of its medium, which BMCs hand on unread. */
export function mediumUrl({ location, cloudInitRef, token, seed, hasSeedInside }: InstallOrder): string {
  // What it is to know is on a medium.
  if (seed !== undefined || hasSeedInside) return location;
  const url = new URL(location);
  url.searchParams.set("token", token);
  if (cloudInitRef !== "") url.searchParams.set("cloud_init", cloudInitRef);
  return url.href;
}
