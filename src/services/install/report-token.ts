import { createHash, timingSafeEqual } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import { ERASE_EVENTS } from "../../lifecycles/install/report.ts";
import type { Boot, InstallRecord } from "../../store/install/installs.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { isSamePlace, type TokenBinding } from "./boot/armed-boot.ts";
import type { ReportInput } from "./report-verdict.ts";

export interface ReportRules {
  /** Each report must show the token of its boot. */
  readonly requireTokens: boolean;
}

/**
 * What a token says of who shows it. `vouched`: an operator has signed in, and needs none. `proven`: the one boot that was armed and that nobody else claims. `earlier`: a boot that an earlier version
 * gave its script, which ends its installation with it. `doubted`: a boot of ours that proves nothing, and why.
 */
export type Trust =
  | { readonly is: "vouched" | "proven" | "earlier" | "none" }
  | { readonly is: "doubted"; readonly why: string; readonly from: string | null };

const PURPOSE = "boot token";
export const DEFAULT_BINDING: TokenBinding = "subnet";

export const hashToken = (token: string): string => createHash("sha256").update(token).digest("hex");

/** The token of a boot for whoever asks from this address: the same whenever, and on whichever replica, it asks. */
export const tokenOf = (
  { secrets, tokenBinding = DEFAULT_BINDING }: Pick<ServiceDeps, "secrets" | "tokenBinding">,
  boot: Boot,
  address: string | null,
): string => secrets.sign(PURPOSE, subjectOf(boot, address, tokenBinding));

const subjectOf = ({ id }: Boot, address: string | null, binding: TokenBinding): string =>
  `${id} ${binding === "off" ? "" : address}`;

/** What the token of a report, or of a request for steps, says of the one who shows it. */
export function trustIn(
  { secrets, tokenBinding = DEFAULT_BINDING }: Pick<ServiceDeps, "secrets" | "tokenBinding">,
  { token, address, voucher }: Pick<ReportInput, "token" | "address" | "voucher">,
  { boot, reportTokenHash }: InstallRecord,
): Trust {
  if (voucher !== undefined) return { is: "vouched" };
  if (token === undefined) return { is: "none" };
  const isOf = (asked: string | null) =>
    boot !== null && secrets.isSigned(PURPOSE, subjectOf(boot, asked, tokenBinding), token);
  if (boot === null || !isOf(boot.address)) {
    if (isKept(token, reportTokenHash)) return { is: "earlier" };
    const other = boot?.others.find((each) => isSamePlace(each, address, tokenBinding) && isOf(each));
    // Of more than so many who asked nothing is kept: where they asked from, their tokens are good.
    const from = other ?? (boot !== null && boot.contestedAt !== null && isOf(address) ? address : undefined);
    return boot === null || from === undefined ? { is: "none" } : { is: "doubted", why: whyContested(boot), from };
  }
  // A token that somebody else has read is worth nothing where it was not given.
  if (reportTokenHash === null || !isSamePlace(boot.address, address, tokenBinding)) return { is: "none" };
  if (boot.contestedAt !== null) return { is: "doubted", why: whyContested(boot), from: boot.address };
  if (boot.armedBy === null) return { is: "doubted", why: "nothing had armed its boot", from: boot.address };
  return { is: "proven" };
}

const whyContested = ({ address, others }: Boot): string =>
  `its boot is contested: ${[address ?? "", ...others].join(" and ")} asked for its script`;

function isKept(token: string, hash: string | null): boolean {
  return hash !== null && timingSafeEqual(Buffer.from(hashToken(token)), Buffer.from(hash));
}

export const needsToken = ({ requireTokens }: ReportRules, { report }: ReportInput): boolean =>
  requireTokens || ERASE_EVENTS.has(report.event ?? "");

/** Whether what it says of the node takes the place of what was known. */
export const isBelieved = ({ is }: Trust): boolean => is === "vouched" || is === "proven" || is === "earlier";

/** That data is gone a boot proves, or an operator in so many words. */
export const notVouchedFor = ({ id }: InstallRecord): AppError =>
  new AppError(
    "failed_precondition",
    "event: only the boot that erases the disks may report this event; an operator confirms an erasure with its own command",
    { field: "event", next: `millwright node confirm-erased ${id}` },
  );

export const badToken = (): AppError =>
  new AppError(
    "unauthenticated",
    "report_token: is missing or wrong; each report must carry the token from the node's last boot script, and come from where that was asked for",
    { field: "report_token" },
  );
