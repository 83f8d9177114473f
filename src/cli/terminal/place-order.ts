interface Placed {
  readonly rackId: string;
  readonly name: string;
  readonly id: string;
}

/** As one walks past them: by rack, then by name, shelf-2 before shelf-10. */
export function byPlace(left: Placed, right: Placed): number {
  const compare = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });
  return compare(left.rackId, right.rackId) || compare(left.name, right.name) || compare(left.id, right.id);
}
