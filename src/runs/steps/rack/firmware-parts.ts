import type { InstalledFirmware } from "../../../capabilities/rack/firmware.ts";
import { StepFailure } from "../../../kernel/errors.ts";
import { namedList } from "../../../kernel/named-list.ts";

/** A component of a firmware record, as far as it tells which parts of a device it is for. */
export type WantedFirmware = {
  readonly component: string;
  readonly version: string;
  /** Parts as the device names them, by their paths or ids. Empty: by the component's word. */
  readonly targets: readonly string[];
};

const MOST_NAMED = 8;
const lastSegment = (path: string): string => path.split("/").findLast((segment) => segment !== "") ?? "";
const same = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/**
 * The parts of a device that a component is the firmware of: those that its targets name, else the one with its id, else those that
 * have its word. Several have it only where they are alike, such as the supplies of a shelf: a guess would be a flash of the wrong
 * part, or one whose version never shows.
 *
 * @throws StepFailure "firmware_mismatch" where there is none, or where only a guess could tell.
 */
export function partsFor(
  installed: readonly InstalledFirmware[],
  { component, targets }: WantedFirmware,
): readonly InstalledFirmware[] {
  const named = installed.filter(({ path, id }) =>
    targets.some((target) => target === path || same(lastSegment(target), id)),
  );
  if (named.length > 0) return named;
  const own = installed.filter(({ id }) => same(id, component));
  if (own.length > 0) return own;
  const alike = installed.filter((part) => same(part.component, component));
  const kinds = new Set(alike.map(({ id }) => id.replaceAll(/\d+/g, "#")));
  if (alike.length > 0 && kinds.size === 1) return alike;
  const shown = namedList(
    (alike.length > 0 ? alike : installed).map(({ id }) => id),
    MOST_NAMED,
  );
  const why =
    alike.length > 0
      ? `has several parts that could be ${component} (${shown}); name one as Target in the firmware record`
      : `shows no firmware of ${component}; it shows ${shown || "none"}`;
  throw new StepFailure("firmware_mismatch", `the device ${why}`, {
    facts: { name: component, expected: component, ...(shown !== "" && { shown }) },
  });
}

export const isAt = (parts: readonly InstalledFirmware[], version: string): boolean =>
  parts.length > 0 && parts.every((part) => part.version === version.trim());

/** For people: `1.0`, or `FW_1 1.0, FW_2 2.0` where they differ. */
export function describeVersions(
  parts: readonly (Pick<InstalledFirmware, "version"> & { readonly id?: string })[],
): string {
  const versions = [...new Set(parts.map(({ version }) => version ?? "no version"))];
  if (versions.length <= 1) return versions[0] ?? "nothing";
  return namedList(
    parts.map(({ id, version }) => `${id} ${version ?? "no version"}`),
    MOST_NAMED,
  );
}
