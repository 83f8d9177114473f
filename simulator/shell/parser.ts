import { type Token, tokenize } from "./lexer.ts";
import {
  type AndOr,
  type Command,
  type Pipeline,
  type Redirect,
  type Script,
  type Statement,
  SyntaxProblem,
  type Word,
  type WordPart,
} from "./syntax.ts";

const ENDS_OF_LISTS = new Set(["then", "else", "elif", "fi", "do", "done", "}"]);

/** The part of the POSIX shell language that scripts for machines are written in; throws SyntaxProblem for the rest. */
export function parseScript(script: string): Script {
  const parser = new Parser(tokenize(script));
  const parsed = parser.list();
  parser.requireEnd();
  return parsed;
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  list(): Script {
    const list: Statement[] = [];
    for (;;) {
      while (this.#takeOperator("\n") || this.#takeOperator(";"));
      if (this.#peek() === undefined || this.#isOperator(")") || ENDS_OF_LISTS.has(this.#keyword() ?? "")) return list;
      const chain = this.#andOr();
      list.push({ chain, background: this.#takeOperator("&") });
    }
  }

  requireEnd(): void {
    if (this.#peek() !== undefined) throw new SyntaxProblem(`"${this.#shown()}" unexpected`);
  }

  #andOr(): AndOr {
    const chain: { after: "always" | "success" | "failure"; pipeline: Pipeline }[] = [
      { after: "always", pipeline: this.#pipeline() },
    ];
    for (;;) {
      const after = this.#takeOperator("&&") ? "success" : this.#takeOperator("||") ? "failure" : undefined;
      if (after === undefined) return chain;
      while (this.#takeOperator("\n"));
      chain.push({ after, pipeline: this.#pipeline() });
    }
  }

  #pipeline(): Pipeline {
    const negated = this.#takeKeyword("!");
    const commands = [this.#command()];
    while (this.#takeOperator("|")) {
      while (this.#takeOperator("\n"));
      commands.push(this.#command());
    }
    return { negated, commands };
  }

  #command(): Command {
    if (this.#takeKeyword("if")) return this.#if();
    if (this.#takeKeyword("while")) return this.#loop(false);
    if (this.#takeKeyword("until")) return this.#loop(true);
    if (this.#takeKeyword("for")) return this.#for();
    if (this.#takeKeyword("{")) return { kind: "group", subshell: false, body: this.#until("}") };
    if (this.#takeOperator("(")) {
      const body = this.list();
      if (!this.#takeOperator(")")) throw new SyntaxProblem(`"${this.#shown()}" unexpected, ")" was expected`);
      return { kind: "group", subshell: true, body };
    }
    return this.#simple();
  }

  #if(): Command {
    const branches: { when: Script; then: Script }[] = [];
    for (;;) {
      const when = this.#until("then");
      const then = this.list();
      branches.push({ when, then });
      if (this.#takeKeyword("elif")) continue;
      const otherwise = this.#takeKeyword("else") ? this.list() : [];
      this.#require("fi");
      return { kind: "if", branches, otherwise };
    }
  }

  #loop(until: boolean): Command {
    const when = this.#until("do");
    return { kind: "loop", until, when, body: this.#until("done") };
  }

  #for(): Command {
    const name = this.#keyword() ?? "";
    this.#at += 1;
    const items: Word[] = [];
    if (this.#takeKeyword("in")) {
      for (let token = this.#peek(); token?.type === "word"; token = this.#peek()) {
        items.push(token.word);
        this.#at += 1;
      }
    }
    while (this.#takeOperator("\n") || this.#takeOperator(";"));
    this.#require("do");
    return { kind: "for", name, items, body: this.#until("done") };
  }

  #simple(): Command {
    const assignments: (readonly [string, Word])[] = [];
    const words: Word[] = [];
    const redirects: Redirect[] = [];
    for (;;) {
      const token = this.#peek();
      const redirect = this.#redirect();
      if (redirect !== undefined) redirects.push(redirect);
      else if (token?.type === "word") {
        this.#at += 1;
        const assignment = words.length === 0 ? asAssignment(token.word) : undefined;
        if (assignment === undefined) words.push(token.word);
        else assignments.push(assignment);
      } else break;
    }
    if (words.length + assignments.length + redirects.length === 0)
      throw new SyntaxProblem(`"${this.#shown()}" unexpected`);
    return { kind: "simple", assignments, words, redirects };
  }

  #redirect(): Redirect | undefined {
    const token = this.#peek();
    if (token?.type === "here") {
      this.#at += 1;
      return { kind: "here", body: token.body };
    }
    if (this.#takeOperator("2>&1")) return { kind: "merge", from: 2, to: 1 };
    if (this.#takeOperator("1>&2") || this.#takeOperator(">&2")) return { kind: "merge", from: 1, to: 2 };
    for (const [operator, from, append] of [
      ["2>>", 2, true],
      ["2>", 2, false],
      [">>", 1, true],
      [">", 1, false],
    ] as const) {
      if (this.#takeOperator(operator)) return { kind: "out", from, append, to: this.#word() };
    }
    return this.#takeOperator("<") ? { kind: "in", file: this.#word() } : undefined;
  }

  #word(): Word {
    const token = this.#peek();
    if (token?.type !== "word") throw new SyntaxProblem(`"${this.#shown()}" unexpected`);
    this.#at += 1;
    return token.word;
  }

  #until(keyword: string): Script {
    const list = this.list();
    this.#require(keyword);
    return list;
  }

  #require(keyword: string): void {
    if (!this.#takeKeyword(keyword))
      throw new SyntaxProblem(`"${this.#shown()}" unexpected, "${keyword}" was expected`);
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#at];
  }

  #isOperator(operator: string): boolean {
    const token = this.#peek();
    return token?.type === "operator" && token.operator === operator;
  }

  #takeOperator(operator: string): boolean {
    if (!this.#isOperator(operator)) return false;
    this.#at += 1;
    return true;
  }

  /** The next word, if it could be a keyword: a single part without quotes. */
  #keyword(): string | undefined {
    const token = this.#peek();
    if (token?.type !== "word" || token.word.length !== 1) return undefined;
    const [part] = token.word;
    return part?.kind === "text" && !part.quoted ? part.text : undefined;
  }

  #takeKeyword(keyword: string): boolean {
    if (this.#keyword() !== keyword) return false;
    this.#at += 1;
    return true;
  }

  #shown(): string {
    const token = this.#peek();
    if (token === undefined) return "end of file";
    return token.type === "operator" ? token.operator.replace("\n", "newline") : (this.#keyword() ?? "word");
  }
}

function asAssignment([first, ...others]: Word): readonly [string, Word] | undefined {
  if (first?.kind !== "text" || first.quoted) return undefined;
  const match = /^([A-Za-z_]\w*)=(.*)$/s.exec(first.text);
  if (match === null) return undefined;
  const value: WordPart = { kind: "text", text: match[2] ?? "", quoted: false };
  return [match[1] ?? "", [value, ...others]];
}
