import { AppError } from "../../kernel/errors.ts";

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

/** Where it happened is for those who look for a bug, not for those who start a server. */
export function wantsStack(argv: readonly string[], env: NodeJS.ProcessEnv = process.env): boolean {
  const flag = argv.find((word) => word.startsWith("--log-level="))?.slice("--log-level=".length);
  const level = flag ?? argv[argv.indexOf("--log-level") + 1] ?? "";
  return ["debug", "trace"].includes(argv.includes("--log-level") || flag ? level : (env.MILLWRIGHT_LOG_LEVEL ?? ""));
}

/** What is printed when a command of the server fails. */
export function describeFailure(
  error: unknown,
  { isConfigCheck, withStack }: { readonly isConfigCheck: boolean; readonly withStack: boolean },
): string {
  const lines = [`error: ${sayingOf(error)}`];
  const next = error instanceof AppError ? error.detail.next : undefined;
  // Who is checking the configuration need not be told to.
  if (next && !(isConfigCheck && next === "millwright config check")) lines.push(`  try: ${next}`);
  if (!(error instanceof AppError) && error instanceof Error) {
    if (withStack) lines.push(error.stack ?? "");
    else lines.push("  try: the same with --log-level debug, which also tells where it happened");
  }
  return `${lines.join("\n")}\n`;
}

/** Several attempts that all failed have no message of their own: a name with two addresses, say. */
function sayingOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "" && error.errors.length > 0) {
    return [...new Set(error.errors.map(sayingOf))].join("; ");
  }
  return error instanceof Error ? error.message || (codeOf(error) ?? error.name) : String(error);
}
