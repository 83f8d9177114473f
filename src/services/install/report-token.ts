import { createHash, timingSafeEqual } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import { ERASE_EVENTS } from "../../lifecycles/install/report.ts";
import type { InstallRecord } from "../../store/install/installs.ts";
import type { ReportInput } from "./report-verdict.ts";

export interface ReportRules {
  /** Each report must show the token of its boot. */
  readonly requireTokens: boolean;
}

export const hashToken = (token: string): string => createHash("sha256").update(token).digest("hex");

export function showsToken({ token }: Pick<ReportInput, "token">, { reportTokenHash }: InstallRecord): boolean {
  if (token === undefined || reportTokenHash === null) return false;
  return timingSafeEqual(Buffer.from(hashToken(token)), Buffer.from(reportTokenHash));
}

export const needsToken = ({ requireTokens }: ReportRules, { report }: ReportInput): boolean =>
  requireTokens || ERASE_EVENTS.has(report.event ?? "");

export const badToken = (): AppError =>
  new AppError(
    "unauthenticated",
    "report_token: is missing or wrong; each report must carry the token from the node's last boot script",
    { field: "report_token" },
  );
