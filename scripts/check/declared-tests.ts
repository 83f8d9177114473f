import { parseAst } from "vitest/node";
import type { SourceFile } from "./source-files.ts";

/** A test, or a group of tests, as its file declares it. */
export interface DeclaredTest {
  /** Its own title, and every text of the table that it is made from: the rows of `test.each` are titles too. */
  readonly titles: ReadonlySet<string>;
  /** Why it may be left out where every counterpart is installed; undefined for a test that always runs there. */
  readonly leftOut: string | undefined;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}
interface Modifier {
  readonly name: string;
  readonly args: readonly Node[];
}
interface Source {
  readonly text: string;
  /** What each variable of the file begins with, by its name. */
  readonly variables: ReadonlyMap<string, Node>;
}

const MODIFIERS = new Set("each for skip skipIf runIf only todo concurrent sequential fails".split(" "));
/** Where every counterpart is installed, CI counts a test that was skipped with such a note as failed. */
const COUNTERPART = /^needs (?!Linux and root)/;
const LONG_ONLY = "runs only with CHAOS_LONG";

/** All tests of a file, those inside of groups too. What leaves out a group leaves out all that is in it. */
export function declaredTestsOf({ path, text }: SourceFile): DeclaredTest[] {
  const program = parseAst(text, { lang: path.endsWith("x") ? "tsx" : "ts" }) as unknown as Node;
  const variables = new Map<string, Node>();
  visit(program, ({ type, id, init }) => {
    if (type === "VariableDeclarator" && isNode(id) && isNode(init)) variables.set(String(id.name), init);
    return true;
  });
  return testsIn(program, { text, variables }, undefined);
}

function testsIn(node: Node, source: Source, outer: string | undefined): DeclaredTest[] {
  const found: DeclaredTest[] = [];
  visit(node, (each) => {
    const modifiers = each.type === "CallExpression" ? modifiersOf(each.callee as Node) : undefined;
    if (modifiers === undefined) return true;
    const args = each.arguments as readonly Node[];
    const title = titleOf(args[0], source);
    if (title === undefined) return true;
    const leftOut =
      outer ??
      modifiers.map((modifier) => leftOutBy(modifier, title.names, source)).find((why) => why !== undefined) ??
      args
        .slice(1)
        .map((arg) => leftOutIn(arg, source))
        .find((why) => why !== undefined);
    const rows = modifiers.filter(({ name }) => name === "each" || name === "for").flatMap((each) => each.args);
    found.push({ titles: new Set([title.text, ...textsIn(rows, source)]), leftOut });
    for (const arg of args.slice(1)) found.push(...testsIn(arg, source, leftOut));
    return false;
  });
  return found;
}

/** `test.skipIf(…).each(…)` has two; what does not begin with `test`, `describe` or a suite of ours has none. */
function modifiersOf(callee: Node): Modifier[] | undefined {
  if (callee.type === "Identifier") return /^(test|it|describe([A-Z]\w*)?)$/.test(String(callee.name)) ? [] : undefined;
  if (callee.type === "MemberExpression") {
    const name = String((callee.property as Node).name);
    const before = MODIFIERS.has(name) ? modifiersOf(callee.object as Node) : undefined;
    return before && [...before, { name, args: [] }];
  }
  if (callee.type !== "CallExpression") return undefined;
  const before = modifiersOf(callee.callee as Node);
  const last = before?.at(-1);
  return before && last && [...before.slice(0, -1), { name: last.name, args: callee.arguments as readonly Node[] }];
}

/** `names` tells whether the title says which counterpart is missing, so that CI fails without it. */
function titleOf(node: Node | undefined, source: Source): { text: string; names: boolean } | undefined {
  if (node === undefined) return undefined;
  if (node.type === "CallExpression" && (node.callee as Node).name === "needing") {
    const title = titleOf((node.arguments as readonly Node[])[0], source);
    return title && { ...title, names: true };
  }
  const text = textOf(node, source);
  return text === undefined ? undefined : { text, names: false };
}

function textOf(node: Node, { text }: Source): string | undefined {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  return node.type === "TemplateLiteral" ? text.slice(node.start + 1, node.end - 1) : undefined;
}

function textsIn(nodes: readonly Node[], source: Source): string[] {
  const texts: string[] = [];
  const collect = (node: Node) =>
    visit(node, (each) => {
      texts.push(...[textOf(each, source) ?? []].flat());
      return true;
    });
  for (const node of nodes) {
    collect(node);
    for (const variable of variablesIn(node, source)) collect(variable);
  }
  return texts;
}

function leftOutBy({ name, args }: Modifier, namesCounterpart: boolean, source: Source): string | undefined {
  if (name === "skip" || name === "todo") return "is never run";
  const condition = args[0];
  if ((name !== "skipIf" && name !== "runIf") || condition === undefined) return undefined;
  if (condition.type === "Literal") return "is never run";
  if (isLongOnly(condition, source)) return LONG_ONLY;
  return namesCounterpart
    ? undefined
    : `is left out by its condition ${source.text.slice(condition.start, condition.end)}`;
}

/** By its options, or by its own words: `skip("needs curl")` fails where curl could have been installed. */
function leftOutIn(arg: Node, source: Source): string | undefined {
  if (arg.type === "ObjectExpression") {
    const names = (arg.properties as readonly Node[]).map(({ key }) => (isNode(key) ? key.name : undefined));
    return names.includes("skip") || names.includes("todo") ? "is never run" : undefined;
  }
  let why: string | undefined;
  const look = (node: Node, condition: Node | undefined): void =>
    visit(node, (each) => {
      if (each.type === "IfStatement" && each !== node) {
        look(each, each.test as Node);
        return false;
      }
      if (each.type !== "CallExpression") return true;
      if (modifiersOf(each.callee as Node) !== undefined) return false;
      if (isSkip(each.callee as Node)) why ??= leftOutByCall(each, condition, source);
      return true;
    });
  look(arg, undefined);
  return why;
}

const isSkip = ({ type, name, property }: Node): boolean =>
  type === "Identifier" ? name === "skip" : type === "MemberExpression" && (property as Node).name === "skip";

function leftOutByCall(call: Node, condition: Node | undefined, source: Source): string | undefined {
  if (condition === undefined) return "is never run";
  if (isLongOnly(condition, source)) return LONG_ONLY;
  const [note] = call.arguments as readonly Node[];
  const text = note && textOf(note, source);
  return text !== undefined && COUNTERPART.test(text) ? undefined : "leaves itself out, and names no counterpart";
}

const isLongOnly = (condition: Node, source: Source): boolean =>
  [condition, ...variablesIn(condition, source)].some(({ start, end }) =>
    source.text.slice(start, end).includes("CHAOS_LONG"),
  );

function variablesIn(node: Node, { variables }: Source): Node[] {
  const found: Node[] = [];
  visit(node, ({ type, name }) => {
    const variable = type === "Identifier" ? variables.get(String(name)) : undefined;
    if (variable) found.push(variable);
    return true;
  });
  return found;
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "type" in value;

/** The node and all below it, as long as `enter` says so. */
function visit(node: Node, enter: (node: Node) => boolean): void {
  if (!enter(node)) return;
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, enter);
}
