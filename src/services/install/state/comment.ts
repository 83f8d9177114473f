import { AppError } from "../../../kernel/errors.ts";
import { isPrintable } from "../../../kernel/printable.ts";

const LONGEST_COMMENT = 1_024;

/** Why, for the history: one line of it. */
export function checkComment(comment: string): void {
  if (comment.length <= LONGEST_COMMENT && isPrintable(comment)) return;
  throw new AppError("invalid_argument", `comment: at most ${LONGEST_COMMENT} printable characters`, {
    field: "comment",
  });
}
