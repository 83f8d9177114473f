import { CliError, EXIT, UsageError } from "./errors.ts";
import type { Session } from "./session.ts";

/** Has a person say yes to what cannot be undone. Where there is nobody to ask, as in cron or CI, it is refused: --yes says it there. */
export async function confirm(
  session: Session,
  { what, canAsk }: { readonly what: string; readonly canAsk: boolean },
): Promise<void> {
  const { stdin, stderr } = session.terminal;
  if (!canAsk || !stdin.isTTY || !stderr.isTTY) {
    throw new UsageError(`not confirmed, and nobody to ask: ${what}`, "--yes does it without asking");
  }
  const answer = await stdin.ask(`${what} Type yes: `, { hidden: false });
  if (answer.trim() !== "yes") throw new CliError(EXIT.usage, "not confirmed; nothing was changed");
}
