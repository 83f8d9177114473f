import { AppError } from "../../kernel/errors.ts";
import type { Access } from "./access.ts";

/**
 * The row of the tables of roles that people mean: the end of a method's name is enough where it names one, and a path stands for the route
 * that it belongs to.
 */
export function methodNamed({ methods }: Pick<Access, "methods">, text: string): string {
  const asked = text.trim().replace(/\s+/g, " ");
  if (asked === "") throw refuse("is required", "millwright auth show lists the methods that you may call");
  const meant = methods.filter((key) => (key.includes(" /") ? isRoute(key, asked) : isMethod(key, asked)));
  const exact = meant.find((key) => key === asked) ?? nearestRoute(meant);
  const [only, ...others] = exact === undefined ? meant : [exact];
  const shown = JSON.stringify(asked.slice(0, 120));
  if (only === undefined) throw refuse(`${shown} is no method and no route`, NEXT);
  if (others.length > 0) throw refuse(`${shown} may be ${meant.slice(0, 5).join(", ")}`, "name the service too");
  return only;
}

const NEXT = "docs/reference/roles.md lists them; millwright auth show those that you may call";
const refuse = (why: string, next: string) =>
  new AppError("invalid_argument", `method: ${why}`, { field: "method", next });

function isMethod(key: string, asked: string): boolean {
  const [name, field] = key.split(" ", 2);
  const [askedName = "", askedField] = asked.split(" ", 2);
  return field === askedField && (name === askedName || /[./]$/.test(ending(name ?? "", askedName)));
}

/** What stands before the end that was asked for; empty where it does not end so. */
const ending = (name: string, end: string): string => (name.endsWith(end) ? name.slice(0, -end.length) : "");

/** Where a path belongs to several, the server takes the one that has most of its words. */
function nearestRoute(routes: readonly string[]): string | undefined {
  if (!routes.every((key) => key.includes(" /"))) return undefined;
  const variables = (key: string) => key.split(/[{*]/).length;
  return routes.toSorted((a, b) => variables(a) - variables(b))[0];
}

function isRoute(key: string, asked: string): boolean {
  const [method = "", path = ""] = key.split(" ", 2);
  const [askedMethod = "", askedPath = ""] = asked.split(" ", 2);
  if (method !== askedMethod.toUpperCase()) return false;
  const words = path.split("/");
  const askedWords = askedPath.split("?", 1)[0]?.split("/") ?? [];
  if (words.at(-1) === "*") return askedWords.length >= words.length && words.slice(0, -1).every(matches);
  return words.length === askedWords.length && words.every(matches);

  function matches(word: string, at: number): boolean {
    const given = askedWords[at] ?? "";
    return word === given || (word.startsWith("{") && given !== "");
  }
}
