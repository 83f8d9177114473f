import { outOfFiles } from "../../kernel/causes/out-of-files.ts";
import { StepFailure } from "../../kernel/errors.ts";

/** The failure when it is ours, and not that of whom we called. */
export function ownTrouble(error: unknown): StepFailure | undefined {
  const lack = outOfFiles(error);
  return lack === undefined ? undefined : new StepFailure("server_trouble", lack, { cause: error });
}
