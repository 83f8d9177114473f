import type { z } from "zod";

/** Input that the simulator refuses; says which field and which rule. */
export class InvalidInput extends Error {
  readonly field: string;

  constructor(field: string, rule: string) {
    super(field === "" ? rule : `${field}: ${rule}`);
    this.name = "InvalidInput";
    this.field = field;
  }
}

/** @param root what the value is called, for the front of the field's name; empty when its fields are named bare. */
export function parseInput<T>(schema: z.ZodType<T>, value: unknown, root = ""): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, message } = deepest(result.error.issues);
  throw new InvalidInput(fieldName(root, path), message);
}

/** Of the alternatives of a union, the one that went furthest is the one that was meant. */
function deepest(issues: readonly z.core.$ZodIssue[]): { path: readonly PropertyKey[]; message: string } {
  const [issue] = issues;
  if (issue === undefined) return { path: [], message: "is not valid" };
  if (issue.code === "unrecognized_keys")
    return { path: [...issue.path, ...issue.keys.slice(0, 1)], message: "is not known" };
  if (issue.code !== "invalid_union" || issue.errors.length === 0) return issue;
  const alternatives = issue.errors.map(deepest).toSorted((a, b) => b.path.length - a.path.length);
  const meant = alternatives[0] ?? { path: [], message: issue.message };
  return { path: [...issue.path, ...meant.path], message: meant.message };
}

function fieldName(root: string, path: readonly PropertyKey[]): string {
  let name = root;
  for (const part of path) name += typeof part === "number" ? `[${part}]` : `${name === "" ? "" : "."}${String(part)}`;
  return name;
}
