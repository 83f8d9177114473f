/**
 * The other spelling of a system UUID: SMBIOS before 2.6 left the byte order of the first three fields open, and firmware took
 * both.
 */
export function swappedUuid(uuid: string): string {
  const [first = "", second = "", third = "", ...rest] = uuid.split("-");
  const turned = (field: string) => (field.match(/../g) ?? []).toReversed().join("");
  return [turned(first), turned(second), turned(third), ...rest].join("-");
}

export const isSameUuid = (one: string, other: string): boolean => one === other || swappedUuid(one) === other;
