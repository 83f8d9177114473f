import { AppError } from "../../kernel/errors.ts";
import { previewRackMaintenance } from "./preview.ts";

/** Each asks up to twelve devices at a time: what viewers look at must leave room for the runs. */
const MOST_AT_ONCE = 4;

/** `previewRackMaintenance` for a few callers at a time; the others are told to come again. */
export function limitPreviews(preview = previewRackMaintenance): typeof previewRackMaintenance {
  let underWay = 0;
  return async (...asked) => {
    if (underWay >= MOST_AT_ONCE)
      throw new AppError(
        "exhausted",
        `${underWay} previews of maintenance are under way on this server: ask again in a few seconds`,
      );
    underWay += 1;
    try {
      return await preview(...asked);
    } finally {
      underWay -= 1;
    }
  };
}
