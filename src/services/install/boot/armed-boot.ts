import { BlockList, isIP } from "node:net";
import { type Duration, hours } from "../../../kernel/time/duration.ts";
import type { Claimant } from "../../../lifecycles/install/boot-decision.ts";
import type { Boot, InstallRecord } from "../../../store/install/installs.ts";

/** What counts as one place: where a boot asks for its script, and where its reports come from. */
export type TokenBinding = "address" | "subnet" | "off";

/** So long after it was armed the machine may take to boot, and to ask for its script again. */
export const ARMED_FOR: Duration = hours(24);
/** Further addresses are served too, and only not listed. */
const MOST_OTHERS = 8;

export interface Asking {
  readonly address: string | null;
  /** What firmware says of the hardware: empty says nothing. */
  readonly identity: string;
  readonly binding: TokenBinding;
  /** A place where a lease that changed is no second machine: never where data is to be gone. */
  readonly mayMove: boolean;
  readonly armedFor: Duration;
  readonly now: Date;
  readonly newId: () => string;
}

/** The boot that asks for its script. `contested`: at least two addresses have asked for that of one boot, this one not first. */
export type Asked = { readonly boot: Boot; readonly as: "new" | "same" | "contested" };

type Known = Pick<InstallRecord, "boot" | "armedAt" | "armedBy">;

/**
 * Which boot it is that asks. An armed one begins once, with the first address that asks. Whoever asks from another address makes it
 * contested: one of the two is not the machine, and nobody can say which.
 */
export function bootOf(known: Known, asking: Asking): Asked {
  const { address, identity, binding, armedFor, now } = asking;
  if (isArmed(known, now, armedFor)) return { as: "new", boot: begin(known.armedBy, asking) };
  const { boot } = known;
  // One that is contested stays so until another is expected: an installation that may be good is not begun again.
  if (boot === null || (boot.contestedAt === null && !isWithin(armedFor, boot.at, now)))
    return { as: "new", boot: begin(null, asking) };
  if (binding === "off" || boot.address === address) return { as: "same", boot };
  const hasMoved = asking.mayMove && identity !== "" && identity === boot.identity;
  if (hasMoved && boot.contestedAt === null && isSamePlace(boot.address, address, binding))
    return { as: "same", boot: { ...boot, address } };
  const others = boot.others.includes(address ?? "") ? boot.others : [...boot.others, address ?? ""];
  return {
    as: "contested",
    boot: { ...boot, others: others.slice(0, MOST_OTHERS), contestedAt: boot.contestedAt ?? now.toISOString() },
  };
}

const begin = (armedBy: string | null, { address, identity, now, newId }: Asking): Boot => ({
  id: newId(),
  armedBy,
  at: now.toISOString(),
  address,
  identity,
  others: [],
  contestedAt: null,
  said: [],
});

/** Under which of those who ask for the script of one boot somebody does. */
export function claimantAs({ state }: Pick<InstallRecord, "state">, { boot }: Asked, address: string | null): Claimant {
  if (boot.contestedAt === null) return "sole";
  // Of the first one the report was believed, before anybody else asked.
  const wasBelieved = state.name === "installing" && boot.address === address;
  return wasBelieved || boot.said.some(({ from }) => from === address) ? "has_begun" : "rival";
}

/** Whether the next boot is expected. */
export const isArmed = ({ armedAt }: Pick<InstallRecord, "armedAt">, now: Date, armedFor: Duration): boolean =>
  armedAt !== null && isWithin(armedFor, armedAt.toISOString(), now);

export const isWithin = (window: Duration, since: string, now: Date): boolean =>
  now.getTime() - Date.parse(since) < window;

/** Whether two addresses are one place by the setting: the same, or of one /24 (IPv4) or /64 (IPv6). */
export function isSamePlace(one: string | null, other: string | null, binding: TokenBinding): boolean {
  if (binding === "off" || one === other) return true;
  if (binding === "address" || one === null || other === null) return false;
  const [a, b] = [one, other].map((address) => address.replace(/%.*$/, ""));
  const version = isIP(a ?? "");
  if (a === undefined || b === undefined || version === 0 || version !== isIP(b)) return false;
  const family = version === 4 ? "ipv4" : "ipv6";
  const list = new BlockList();
  list.addSubnet(a, version === 4 ? 24 : 64, family);
  return list.check(b, family);
}
