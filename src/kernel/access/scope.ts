/** What a token is limited to, besides its roles. A list that is empty limits nothing; those that are not must all be kept to. */
export interface Scope {
  /** Groups of methods. */
  readonly methods: readonly string[];
}

export type ScopeLimit = keyof Scope;

/** As people write and read it, a word for each limit: `methods=runs,machines`. */
export const printScope = (scope: Scope): string[] =>
  (Object.entries(scope) as [ScopeLimit, readonly string[]][]).flatMap(([limit, values]) =>
    values.length === 0 ? [] : [`${limit}=${values.join(",")}`],
  );
