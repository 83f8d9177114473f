/** A template that `kubectl -o jsonpath=` understands and that is written wrongly. */
export class JsonPathProblem extends Error {}

type Piece =
  | { readonly is: "text"; readonly text: string }
  | { readonly is: "path"; readonly steps: readonly string[] }
  | { readonly is: "range"; readonly steps: readonly string[]; readonly body: readonly Piece[] };

/** As much of kubectl's templates as scripts need: text, paths, `[*]`, `\.` within a name, `{"\n"}` and ranges. */
export function fillJsonPath(template: string, object: unknown): string {
  const { pieces, end } = parse(template, 0, false);
  if (end < template.length) throw new JsonPathProblem("not in range, nothing to end");
  return fill(pieces, object);
}

const fill = (pieces: readonly Piece[], object: unknown): string =>
  pieces
    .map((piece) => {
      if (piece.is === "text") return piece.text;
      const found = valuesAt(object, piece.steps);
      return piece.is === "range" ? found.map((each) => fill(piece.body, each)).join("") : found.map(shown).join(" ");
    })
    .join("");

/** What is not there is left out, and is no error. */
function valuesAt(object: unknown, steps: readonly string[]): unknown[] {
  let values: unknown[] = [object];
  for (const step of steps)
    values = values.flatMap((value) => {
      if (typeof value !== "object" || value === null) return [];
      if (step === "*") return Object.values(value);
      return Object.hasOwn(value, step) ? [(value as Readonly<Record<string, unknown>>)[step]] : [];
    });
  return values;
}

const shown = (value: unknown): string =>
  typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);

function parse(template: string, start: number, inRange: boolean): { pieces: Piece[]; end: number } {
  const pieces: Piece[] = [];
  let at = start;
  while (at < template.length) {
    const open = template.indexOf("{", at);
    if (open !== at) {
      const text = template.slice(at, open === -1 ? undefined : open);
      pieces.push({ is: "text", text });
      at += text.length;
      continue;
    }
    const close = template.indexOf("}", at);
    if (close === -1) throw new JsonPathProblem("unclosed action");
    const action = template.slice(at + 1, close).trim();
    if (action === "end") return { pieces, end: inRange ? close + 1 : at };
    const range = /^range\s+(.*)$/s.exec(action)?.[1];
    if (range === undefined) {
      pieces.push(pieceOf(action));
      at = close + 1;
    } else {
      const inner = parse(template, close + 1, true);
      pieces.push({ is: "range", steps: stepsOf(range), body: inner.pieces });
      at = inner.end;
    }
  }
  if (inRange) throw new JsonPathProblem("unclosed range");
  return { pieces, end: at };
}

function pieceOf(action: string): Piece {
  if (/^".*"$/s.test(action)) return { is: "text", text: String(JSON.parse(action)) };
  return { is: "path", steps: stepsOf(action) };
}

/** `.a.b[*].c\.d/e`, with or without a leading `$` or `@`. */
function stepsOf(path: string): string[] {
  const steps: string[] = [];
  let rest = path.replace(/^[$@]/, "");
  while (rest !== "") {
    const [whole, name, index] = /^(?:\.((?:\\.|[^.[\]\\])+)|\[(\*|\d+)\])/.exec(rest) ?? [];
    if (whole === undefined) throw new JsonPathProblem(`unrecognized character in action: ${rest.slice(0, 20)}`);
    steps.push(name === undefined ? (index ?? "") : name.replaceAll(/\\(.)/g, "$1"));
    rest = rest.slice(whole.length);
  }
  return steps;
}
