import { AppError } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";

const LONGEST = 128;

/** A caller's idempotency key; absent: none. */
export function parseRequestId(text: string | undefined): string | undefined {
  if (text === undefined || (text.length <= LONGEST && isPrintable(text))) return text;
  throw new AppError("invalid_argument", `request_id: at most ${LONGEST} printable characters`, {
    field: "request_id",
  });
}
