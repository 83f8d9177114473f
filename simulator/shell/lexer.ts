import { type Otherwise, SyntaxProblem, type Word, type WordPart } from "./syntax.ts";

export type Token =
  | { readonly type: "word"; readonly word: Word }
  | { readonly type: "operator"; readonly operator: string }
  | { readonly type: "here"; readonly body: Word };

/** Longest first. */
const OPERATORS = ["2>&1", "1>&2", ">&2", "2>>", "&&", "||", ";;", ">>", "2>", ">", "<", "|", "&", ";", "(", ")", "\n"];
const VARIABLE = /^(?:\{([A-Za-z_]\w*|[0-9#@?*$!])(?:(:?[-?])([^}]*))?\}|([A-Za-z_]\w*|[0-9#@?*$!]))/;

interface PendingHere {
  readonly delimiter: string;
  readonly verbatim: boolean;
  readonly place: number;
}

/** Splits a script into words and operators. Here-documents come as tokens of their own, where their `<<` stood. */
export function tokenize(script: string): Token[] {
  const tokens: Token[] = [];
  const heres: PendingHere[] = [];
  let at = 0;
  while (at < script.length) {
    const rest = script.slice(at);
    const blank =
      /^(?:[ \t\r]|\\\n)+/.exec(rest)?.[0] ?? (rest.startsWith("#") ? /^#[^\n]*/.exec(rest)?.[0] : undefined);
    if (blank !== undefined) {
      at += blank.length;
      continue;
    }
    const here = /^<<-?[ \t]*(['"]?)([A-Za-z_]\w*)\1/.exec(rest);
    if (here !== null) {
      heres.push({ delimiter: here[2] ?? "", verbatim: here[1] !== "", place: tokens.length });
      tokens.push({ type: "here", body: [] });
      at += here[0].length;
      continue;
    }
    const operator = OPERATORS.find((candidate) => rest.startsWith(candidate));
    if (operator !== undefined) {
      tokens.push({ type: "operator", operator });
      at += operator.length;
      if (operator === "\n") at = readHeres(script, at, heres.splice(0), tokens);
      continue;
    }
    const read = readWord(script, at);
    tokens.push({ type: "word", word: read.word });
    at = read.end;
  }
  if (heres.length > 0) throw new SyntaxProblem(`here-document "${heres[0]?.delimiter}" is not ended`);
  return tokens;
}

function readHeres(script: string, start: number, heres: readonly PendingHere[], tokens: Token[]): number {
  let at = start;
  for (const { delimiter, verbatim, place } of heres) {
    const end = new RegExp(`^\\t*${delimiter}$`, "m").exec(script.slice(at));
    if (end === null) throw new SyntaxProblem(`here-document "${delimiter}" is not ended`);
    const text = script.slice(at, at + end.index);
    tokens[place] = {
      type: "here",
      body: verbatim ? [{ kind: "text", text, quoted: true }] : readQuoted(text, 0, undefined).parts,
    };
    at += end.index + end[0].length + 1;
  }
  return at;
}

function readWord(script: string, start: number): { word: Word; end: number } {
  const parts: WordPart[] = [];
  let at = start;
  while (at < script.length) {
    const rest = script.slice(at);
    const char = rest[0] ?? "";
    if (/[\s;&|<>()]/.test(char)) break;
    if (char === "'") {
      const end = script.indexOf("'", at + 1);
      if (end === -1) throw new SyntaxProblem("unterminated quoted string");
      parts.push({ kind: "text", text: script.slice(at + 1, end), quoted: true });
      at = end + 1;
    } else if (char === '"') {
      const read = readQuoted(script, at + 1, '"');
      // An empty pair of quotes is a word, too.
      parts.push({ kind: "text", text: "", quoted: true }, ...read.parts);
      at = read.end;
    } else if (char === "\\") {
      parts.push({ kind: "text", text: rest[1] === "\n" ? "" : (rest[1] ?? ""), quoted: true });
      at += 2;
    } else if (char === "$") {
      const read = readDollar(script, at, false);
      parts.push(read.part);
      at = read.end;
    } else {
      const text = /^[^\s;&|<>()'"\\$]+/.exec(rest)?.[0] ?? char;
      parts.push({ kind: "text", text, quoted: false });
      at += text.length;
    }
  }
  return { word: parts, end: at };
}

/** Within double quotes, or within a here-document when there is no closing quote. */
function readQuoted(script: string, start: number, close: '"' | undefined): { parts: WordPart[]; end: number } {
  const parts: WordPart[] = [];
  let at = start;
  while (at < script.length) {
    const char = script[at] ?? "";
    if (char === close) return { parts, end: at + 1 };
    if (char === "\\" && /["$`\\\n]/.test(script[at + 1] ?? "")) {
      parts.push({ kind: "text", text: script[at + 1] === "\n" ? "" : (script[at + 1] ?? ""), quoted: true });
      at += 2;
    } else if (char === "$") {
      const read = readDollar(script, at, true);
      parts.push(read.part);
      at = read.end;
    } else {
      const text = /^[^"\\$]+/.exec(script.slice(at))?.[0] ?? char;
      parts.push({ kind: "text", text, quoted: true });
      at += text.length;
    }
  }
  if (close !== undefined) throw new SyntaxProblem("unterminated quoted string");
  return { parts, end: at };
}

function readDollar(script: string, start: number, quoted: boolean): { part: WordPart; end: number } {
  if (script.startsWith("((", start + 1)) {
    const end = closingParenthesis(script, start + 3);
    if (script[end + 1] !== ")") throw new SyntaxProblem("unterminated $(( ))");
    return { part: { kind: "arithmetic", expression: script.slice(start + 3, end), quoted }, end: end + 2 };
  }
  if (script[start + 1] === "(") {
    const end = closingParenthesis(script, start + 2);
    return { part: { kind: "output", script: script.slice(start + 2, end), quoted }, end: end + 1 };
  }
  const match = VARIABLE.exec(script.slice(start + 1));
  if (match === null) return { part: { kind: "text", text: "$", quoted: true }, end: start + 1 };
  const [whole, braced, how, text = "", bare] = match;
  const otherwise: Otherwise | null =
    how === undefined ? null : { how: how.endsWith("?") ? "fail" : "use", text: readQuoted(text, 0, undefined).parts };
  const part: WordPart = { kind: "variable", name: braced ?? bare ?? "", otherwise, quoted };
  return { part, end: start + 1 + whole.length };
}

function closingParenthesis(script: string, start: number): number {
  let depth = 1;
  for (let at = start; at < script.length; at += 1) {
    if (script[at] === "(") depth += 1;
    else if (script[at] === ")") depth -= 1;
    if (depth === 0) return at;
  }
  throw new SyntaxProblem("unterminated $( )");
}
