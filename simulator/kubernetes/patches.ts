/** A change that does not fit what it is applied to; answered with 422. */
export class UnfitPatch extends Error {}

/** RFC 7386. For the fields that nodes have here, a strategic merge patch does the same. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    // Directives of strategic merge patches speak of the order of lists, which matters to nobody here.
    if (key.startsWith("$")) continue;
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

/** RFC 6902, with `add`, `replace`, `remove` and `test`. */
export function jsonPatch(target: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw new UnfitPatch("a JSON patch is a list of operations");
  const result: unknown = structuredClone(target);
  for (const operation of operations as readonly unknown[]) {
    if (!isObject(operation) || typeof operation.path !== "string" || !operation.path.startsWith("/"))
      throw new UnfitPatch("an operation needs a path that starts with /");
    const keys = operation.path.slice(1).split("/").map(unescapePointer);
    applyOperation(result, keys, operation);
  }
  return result;
}

function applyOperation(root: unknown, keys: readonly string[], operation: Readonly<Record<string, unknown>>): void {
  const last = keys.at(-1) ?? "";
  let parent: unknown = root;
  for (const key of keys.slice(0, -1)) parent = isContainer(parent) ? parent[key] : undefined;
  if (!isContainer(parent) || last === "__proto__")
    throw new UnfitPatch(`the path ${String(operation.path)} does not exist`);
  switch (operation.op) {
    case "add":
      if (Array.isArray(parent) && last === "-") parent.push(operation.value);
      else if (Array.isArray(parent)) parent.splice(Number(last), 0, operation.value);
      else parent[last] = operation.value;
      return;
    case "replace":
      parent[last] = operation.value;
      return;
    case "remove":
      if (!Object.hasOwn(parent, last)) throw new UnfitPatch(`the path ${String(operation.path)} does not exist`);
      if (Array.isArray(parent)) parent.splice(Number(last), 1);
      else delete parent[last];
      return;
    case "test":
      if (JSON.stringify(parent[last]) !== JSON.stringify(operation.value))
        throw new UnfitPatch(`the test of ${String(operation.path)} failed`);
      return;
    default:
      throw new UnfitPatch(`the operation ${String(operation.op)} is not known`);
  }
}

const unescapePointer = (key: string): string => key.replaceAll("~1", "/").replaceAll("~0", "~");

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isContainer = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
