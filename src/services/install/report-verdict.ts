import { follow, type Move } from "../../kernel/decide.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { InstallState } from "../../lifecycles/install/install.ts";
import { whyIncomplete } from "../../lifecycles/install/install-steps.ts";
import { installLifecycle } from "../../lifecycles/install/lifecycle.ts";
import { ERASE_EVENTS, failureOf, type NodeReport, verbOf, whyNotErased } from "../../lifecycles/install/report.ts";
import type { Boot, InstallRecord } from "../../store/install/installs.ts";
import type { Caller } from "../call/caller.ts";
import { isBelieved, type Trust } from "./report-token.ts";

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
  /** The operator who sends it in the place of the node. */
  readonly voucher?: Caller | undefined;
}

export interface DecidedReport {
  readonly input: ReportInput;
  readonly install: InstallRecord;
  /** What it says of the node takes the place of what was known; otherwise it only fills in what was not. */
  readonly isBelieved: boolean;
  readonly move: Move | undefined;
  /** Why a report that the table knows in principle was not followed. */
  readonly ignored: string | undefined;
  /** What people are to see of that. */
  readonly facts?: JsonObject;
  /** What is kept of a boot that proves nothing. */
  readonly boot?: Boot;
  /** What the node is told of its state, where that is another than people see. */
  readonly shownState?: InstallState;
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
  const base = { input, install, isBelieved: isBelieved(trust), now };
  const doubted = whyDoubted(trust, verb);
  if (doubted !== undefined && OF_A_BOOT.has(install.state.name)) {
    const why = `${verb} was reported, but ${doubted}`;
    return { ...base, move: undefined, ...ofDoubted(install, { trust, verb, why, holder }) };
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

/** States in which the boots of a node are what leads it on. */
const OF_A_BOOT: ReadonlySet<string> = new Set<InstallState>(["pending", "installing", "deprovisioning"]);

/** A boot that proves nothing decides nothing. That data is gone only the one boot can say that was armed to erase it. */
function whyDoubted(trust: Trust, verb: string | undefined): string | undefined {
  if (verb === undefined) return undefined;
  if (trust.is === "doubted") return trust.why;
  if (trust.is === "proven" || trust.is === "vouched" || !ERASE_EVENTS.has(verb)) return undefined;
  return "its boot was given its script by an earlier version";
}

const MOST_SAID = 64;

interface Doubted {
  readonly trust: Trust;
  readonly verb: string | undefined;
  readonly why: string;
  readonly holder: string | undefined;
}

/**
 * Of each who asked for the script, what they say is kept once, for people. They are answered as if it were believed: the machine, whichever of
 * them it is, goes on with its installation.
 */
function ofDoubted(
  install: InstallRecord,
  { trust, verb = "", why, holder }: Doubted,
): Pick<DecidedReport, "ignored" | "facts" | "boot" | "shownState"> {
  const shown =
    install.state.name !== "deprovisioning" && holder === undefined ? { shownState: "installing" as const } : {};
  const from = trust.is === "doubted" ? trust.from : null;
  const said = install.boot?.said ?? [];
  const isKnown = said.some((each) => each.verb === verb && each.from === from);
  if (isKnown || verb === "progress" || said.length >= MOST_SAID) return { ignored: undefined, ...shown };
  return {
    ignored: why,
    facts: { lastInstallError: why },
    ...shown,
    ...(install.boot !== null &&
      trust.is === "doubted" && { boot: { ...install.boot, said: [...said, { verb, from }] } }),
  };
}

/** In every other state `erased` leads nowhere anyway. */
const unfinishedErase = ({ report }: ReportInput, install: InstallRecord): string | undefined =>
  install.state.name === "deprovisioning" ? whyNotErased(install, report.erasedDisks ?? []) : undefined;

const claims = (state: string): boolean =>
  (installLifecycle.states as Readonly<Record<string, { readonly claims?: true }>>)[state]?.claims === true;
