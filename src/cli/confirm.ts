import { CliError, EXIT, UsageError } from "./errors.ts";
import type { Session } from "./session.ts";

export interface DeleteOptions {
  readonly yes?: boolean;
}

/**
 * Has a person say yes to what cannot be undone, or type the name of what others may be using. Where there is nobody to ask, as in
 * cron or CI, it is refused: --yes says it there.
 */
export async function confirm(
  session: Session,
  { what, canAsk, answer = "yes" }: { readonly what: string; readonly canAsk: boolean; readonly answer?: string },
): Promise<void> {
  const { stdin, stderr } = session.terminal;
  if (!canAsk || !stdin.isTTY || !stderr.isTTY) {
    throw new UsageError(`not confirmed, and nobody to ask: ${what}`, "--yes does it without asking");
  }
  const typed = await stdin.ask(`${what} Type ${answer}: `, { hidden: false });
  if (typed.trim() !== answer) throw new CliError(EXIT.usage, "not confirmed; nothing was changed");
}
