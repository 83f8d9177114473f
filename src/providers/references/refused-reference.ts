import { AppError } from "../../kernel/errors.ts";

/** Why a reference cannot be read. Whoever resolves it puts the reference in front. */
export const refusedReference = (why: string, next: string): AppError =>
  new AppError("failed_precondition", why, { next });
