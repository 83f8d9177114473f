/** A piece of a word. What is not quoted is split at white space after expansion. */
export type WordPart =
  | { readonly kind: "text"; readonly text: string; readonly quoted: boolean }
  | { readonly kind: "variable"; readonly name: string; readonly otherwise: Otherwise | null; readonly quoted: boolean }
  | { readonly kind: "output"; readonly script: string; readonly quoted: boolean }
  | { readonly kind: "arithmetic"; readonly expression: string; readonly quoted: boolean };

/** `${NAME:-text}` and `${NAME:?text}`. */
export interface Otherwise {
  readonly how: "use" | "fail";
  readonly text: Word;
}

export type Word = readonly WordPart[];

export type Redirect =
  | { readonly kind: "out"; readonly from: 1 | 2; readonly append: boolean; readonly to: Word }
  | { readonly kind: "merge"; readonly from: 1 | 2; readonly to: 1 | 2 }
  | { readonly kind: "in"; readonly file: Word }
  | { readonly kind: "here"; readonly body: Word };

export type Command =
  | {
      readonly kind: "simple";
      readonly assignments: readonly (readonly [name: string, value: Word])[];
      readonly words: readonly Word[];
      readonly redirects: readonly Redirect[];
    }
  | { readonly kind: "group"; readonly subshell: boolean; readonly body: Script }
  | { readonly kind: "if"; readonly branches: readonly { when: Script; then: Script }[]; readonly otherwise: Script }
  | { readonly kind: "loop"; readonly until: boolean; readonly when: Script; readonly body: Script }
  | { readonly kind: "for"; readonly name: string; readonly items: readonly Word[]; readonly body: Script };

export interface Pipeline {
  readonly negated: boolean;
  readonly commands: readonly Command[];
}

/** `a && b || c`; the first one has no condition. */
export type AndOr = readonly { readonly after: "always" | "success" | "failure"; readonly pipeline: Pipeline }[];

/** One chain of a script; with `&` behind it nobody waits for it. */
export interface Statement {
  readonly chain: AndOr;
  readonly background: boolean;
}
export type Script = readonly Statement[];

/** Said as a shell says it; the command then ends with code 2. */
export class SyntaxProblem extends Error {}
