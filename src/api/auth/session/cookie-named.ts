/** What a request brings in the cookie of that name; undefined where there is none, or it is empty. */
export function cookieNamed(cookies: string | null | undefined, name: string): string | undefined {
  const pairs = (cookies ?? "").split(";").map((pair) => pair.trim().split("=", 2) as [string, string?]);
  return pairs.find(([each, value]) => each === name && value)?.[1];
}
