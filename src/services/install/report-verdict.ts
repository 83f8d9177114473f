import { follow, type Move } from "../../kernel/decide.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { whyIncomplete } from "../../lifecycles/install/install-steps.ts";
import { installLifecycle } from "../../lifecycles/install/lifecycle.ts";
import { ERASE_EVENTS, failureOf, type NodeReport, verbOf, whyNotErased } from "../../lifecycles/install/report.ts";
import type { InstallRecord } from "../../store/install/installs.ts";
import type { Trust } from "./report-token.ts";

export interface ReportInput {
  readonly report: NodeReport;
  /** The node, where the caller knows it; otherwise it is whose the MAC address is. */
  readonly nodeId?: string | undefined;
  /** From where it came, for the audit. */
  readonly address: string | null;
  /** Makes it safe to send again: under a key that was seen, nothing happens. */
  readonly reportId?: string | undefined;
  /** What the boot script of this boot gave the node to show. */
  readonly token?: string | undefined;
}

export interface DecidedReport {
  readonly input: ReportInput;
  readonly install: InstallRecord;
  readonly move: Move | undefined;
  /** Why a report that the table knows in principle was not followed. */
  readonly ignored: string | undefined;
  /** What people are to see of that. */
  readonly facts?: JsonObject;
  readonly now: Date;
}

/** What the table makes of a report. */
export function decideReport(
  input: ReportInput,
  install: InstallRecord,
  { trust, holder, now }: { readonly trust: Trust; readonly holder: string | undefined; readonly now: Date },
): DecidedReport {
  const { report } = input;
  const verb = verbOf(report);
  const base = { input, install, now };
  const unproven = ERASE_EVENTS.has(verb ?? "") ? whyUnproven(trust) : undefined;
  if (unproven !== undefined && install.state.name === "deprovisioning") {
    const why = `${verb} was reported, but ${unproven}`;
    return { ...base, move: undefined, ignored: why, facts: { lastInstallError: why } };
  }
  const unfinished = verb === "erased" ? unfinishedErase(input, install) : undefined;
  // An environment that knows no steps would leave them all out.
  const incomplete =
    verb === "complete" && install.state.name === "installing" ? whyIncomplete(install.facts.steps) : undefined;
  if (incomplete !== undefined)
    return { ...base, move: undefined, ignored: incomplete, facts: { lastInstallError: incomplete } };
  if (unfinished !== undefined)
    return { ...base, move: undefined, ignored: unfinished, facts: { lastInstallError: unfinished } };
  if (verb === undefined) return { ...base, move: undefined, ignored: undefined };
  const move = follow(installLifecycle, install, {
    owner: "agent",
    name: verb,
    data: {
      now: now.toISOString(),
      token_shown: trust.is === "proven" || trust.is === "earlier",
      ...(report.progress !== undefined && { progress: report.progress }),
      ...(report.step !== undefined && { step: report.step }),
      ...(report.erasedDisk !== undefined && { disk: report.erasedDisk }),
    },
    ...((verb === "failed" || verb === "erase_failed") && { message: failureOf(report) }),
  });
  if (!move) return { ...base, move, ignored: `${verb} was reported while ${install.state.name}` };
  const begins = !claims(move.from) && claims(move.to);
  if (begins && holder !== undefined) {
    return { ...base, move: undefined, ignored: `${verb} was reported while ${holder} works on the machine` };
  }
  return { ...base, move, ignored: undefined };
}

/** That data is gone only the one boot can say that was armed to erase it. */
function whyUnproven(trust: Trust): string | undefined {
  if (trust.is === "doubted") return trust.why;
  return trust.is === "proven" ? undefined : "its boot was given its script by an earlier version";
}

/** In every other state `erased` leads nowhere anyway. */
const unfinishedErase = ({ report }: ReportInput, install: InstallRecord): string | undefined =>
  install.state.name === "deprovisioning" ? whyNotErased(install, report.erasedDisks ?? []) : undefined;

const claims = (state: string): boolean =>
  (installLifecycle.states as Readonly<Record<string, { readonly claims?: true }>>)[state]?.claims === true;
