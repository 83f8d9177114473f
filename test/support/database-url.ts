/** The same server, another database. The parts of a socket's URL are no URL to `new URL`, so this cuts by hand. */
export function databaseUrl(url: string, database: string): string {
  const match = /^([a-z]+:\/\/[^/]*)\/[^?]*(\?.*)?$/.exec(url);
  if (match === null) throw new Error("a database URL looks like postgresql://user@host/name");
  return `${match[1]}/${database}${match[2] ?? ""}`;
}
