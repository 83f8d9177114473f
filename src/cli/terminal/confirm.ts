import { CliError, EXIT, UsageError } from "../client/errors.ts";
import type { Session } from "../client/session.ts";

export interface ConfirmOptions {
  readonly yes?: boolean;
}

/** Of every command that always asks first: whatever deletes, revokes, retires or erases. */
export const YES_OPTION = ["-y, --yes", "do not ask for confirmation; required without a terminal"] as const;

export interface Question {
  readonly what: string;
  /** What is typed to agree; of what others may be using, its name. */
  readonly answer?: string;
  /** False where standard input has been read already: nobody can answer there. */
  readonly canAsk?: boolean;
}

/**
 * Has a person say yes to what cannot be undone, or type the name of what others may be using. Where there is nobody to ask, as in
 * cron or CI, it is refused: --yes says it there.
 */
export async function confirm(session: Session, { what, answer = "yes", canAsk = true }: Question): Promise<void> {
  const { stdin, stderr } = session.terminal;
  if (!canAsk || !stdin.isTTY || !stderr.isTTY) {
    throw new UsageError(
      `confirmation required, but there is no terminal: ${what}`,
      "--yes goes on without confirmation",
    );
  }
  const typed = await stdin.ask(`${what} Type ${answer}: `, { hidden: false });
  if (typed.trim() !== answer) throw new CliError(EXIT.usage, "not confirmed; nothing was changed");
}
