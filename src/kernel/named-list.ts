/** "a, b, c and 4 more": a long list drowns the reader. */
export function namedList(names: readonly string[], most: number): string {
  const more = names.length - most;
  return `${names.slice(0, most).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
