import { shownError } from "../api/errors.ts";
import type { ActionResult } from "./action.ts";

/** As many calls at once as leave the browser connections for the rest of the page. */
const AT_ONCE = 3;

/** Does something with each of several things, some at a time; what fails for one keeps no other from it. */
export async function performEach<T>(
  things: readonly T[],
  perform: (thing: T) => Promise<ActionResult>,
  nameOf: (thing: T) => Pick<ActionResult, "kind" | "id">,
): Promise<readonly ActionResult[]> {
  const results: ActionResult[] = [];
  const left = [...things.entries()];
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const [at, thing] = next;
      results[at] = await perform(thing).catch((error: unknown) => {
        const { message, next: helps } = shownError(error);
        return { ...nameOf(thing), refusal: message, next: helps };
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return results;
}
