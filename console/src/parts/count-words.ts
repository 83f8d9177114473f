/** `1 power shelf`, `16 power shelves`: kinds are words of the API, and their plurals are English. */
export const countWords = (count: number, kind: string): string =>
  `${count.toLocaleString("en")} ${count === 1 ? kind.replaceAll("_", " ") : pluralOf(kind)}`;

export const pluralOf = (kind: string): string => {
  const words = kind.replaceAll("_", " ");
  if (/(ch|sh|s|x)$/.test(words)) return `${words}es`;
  return words.endsWith("lf") ? `${words.slice(0, -1)}ves` : words.replace(/([^aeiou])y$/, "$1ie").concat("s");
};
