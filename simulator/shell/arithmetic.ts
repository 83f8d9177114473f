import { SyntaxProblem } from "./syntax.ts";

const TOKEN = /\s*(?:(\d+)|\$?([A-Za-z_]\w*)|(<=|>=|==|!=|[-+*/%()<>]))/y;
type Token = number | string;

/** Each level binds tighter than the one before it. */
const LEVELS: readonly Readonly<Record<string, (a: number, b: number) => number>>[] = [
  { "==": (a, b) => Number(a === b), "!=": (a, b) => Number(a !== b) },
  {
    "<": (a, b) => Number(a < b),
    ">": (a, b) => Number(a > b),
    "<=": (a, b) => Number(a <= b),
    ">=": (a, b) => Number(a >= b),
  },
  { "+": (a, b) => a + b, "-": (a, b) => a - b },
  { "*": (a, b) => a * b, "/": divide, "%": (a, b) => a - b * divide(a, b) },
];

/** What stands within `$(( ))`: whole numbers, variables and the usual operators. A variable that is not set is 0. */
export function evaluate(expression: string, valueFor: (name: string) => string | undefined): number {
  const tokens = read(expression, valueFor);
  let at = 0;
  const operand = (): number => {
    const token = tokens[at++];
    if (typeof token === "number") return token;
    if (token === "-") return -operand();
    if (token !== "(") throw new SyntaxProblem(`arithmetic expression: "${expression.trim()}"`);
    const inner = level(0);
    if (tokens[at++] !== ")") throw new SyntaxProblem(`arithmetic expression: "${expression.trim()}"`);
    return inner;
  };
  const level = (depth: number): number => {
    const operators = LEVELS[depth];
    if (operators === undefined) return operand();
    let left = level(depth + 1);
    for (let token = tokens[at]; typeof token === "string" && Object.hasOwn(operators, token); token = tokens[at]) {
      at += 1;
      left = operators[token]?.(left, level(depth + 1)) ?? left;
    }
    return left;
  };
  const result = level(0);
  if (at < tokens.length) throw new SyntaxProblem(`arithmetic expression: "${expression.trim()}"`);
  return result;
}

function read(expression: string, valueFor: (name: string) => string | undefined): Token[] {
  const tokens: Token[] = [];
  const text = expression.trimEnd();
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (match === null) throw new SyntaxProblem(`arithmetic expression: "${expression.trim()}"`);
    const [, digits, name, operator = ""] = match;
    if (digits !== undefined) tokens.push(Number(digits));
    else if (name !== undefined) tokens.push(Number.parseInt(valueFor(name) ?? "", 10) || 0);
    else tokens.push(operator);
  }
  return tokens;
}

function divide(a: number, b: number): number {
  if (b === 0) throw new SyntaxProblem("division by zero");
  return Math.trunc(a / b);
}
