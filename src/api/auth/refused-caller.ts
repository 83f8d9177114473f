const callers = new WeakMap<object, string>();

/** Says whose call the error refused: the error itself is for the caller, and need not name anybody. */
export function refusedTo<E>(error: E, caller: string | null): E {
  if (typeof error === "object" && error !== null && caller !== null) callers.set(error, caller);
  return error;
}

/** Null where the caller's credentials name nobody. */
export const refusedCallerOf = (error: unknown): string | null =>
  typeof error === "object" && error !== null ? (callers.get(error) ?? null) : null;
