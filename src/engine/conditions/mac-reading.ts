import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type Duration, hours } from "../../kernel/time/duration.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";

/** Cards are moved and replaced. */
const READ_EVERY = hours(12);
/** A BMC that named none may only not know them yet, as while its host is off. */
const READ_AGAIN = hours(1);

/** Whether it is time to ask the BMC for its MAC addresses; `age`: how long ago it was asked, null for never. */
export function areMacsDue({ facts: { macs } }: Pick<Machine, "facts">, age: Duration | null): boolean {
  if (macs === null || age === null) return true;
  return age >= (macs.length === 0 ? READ_AGAIN : READ_EVERY);
}

/** What is new of what the BMC has told; nothing where it could not be read. That it names none does not say that there are none. */
export function newMacs({ facts }: Pick<Machine, "facts">, told: readonly string[] | undefined): JsonObject {
  const known = facts.macs ?? [];
  if (told === undefined || (told.length === 0 && known.length > 0)) return {};
  const isSame = facts.macs !== null && known.length === told.length && told.every((mac) => known.includes(mac));
  return isSame ? {} : { macs: told };
}
