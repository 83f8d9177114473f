import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type ErasedDisk, type Install, MAX_INSTALL_ATTEMPTS } from "./install.ts";
import type { StepReport } from "./install-steps.ts";

export const INSTALLATION_STATUSES = ["started", "progress", "complete", "failed"] as const;
export type InstallationStatus = (typeof INSTALLATION_STATUSES)[number];

/** What a node tells of besides its installation: that it runs the installed system, and how the erasing of its disks goes. */
export const NODE_EVENTS = ["first_boot", "disk_erased", "erase_failed", "erased"] as const;
export type NodeEvent = (typeof NODE_EVENTS)[number];
/** Only the boot that was commanded to erase the data can report that it is gone. */
export const ERASE_EVENTS: ReadonlySet<string> = new Set<NodeEvent>(["disk_erased", "erase_failed", "erased"]);

/** What a node says of itself and of its install. Absent: nothing said. */
export interface NodeReport {
  readonly mac: string;
  readonly ipAddress?: string;
  readonly hostname?: string;
  readonly vendor?: string;
  readonly model?: string;
  readonly serialNumber?: string;
  readonly systemUuid?: string;
  readonly status?: InstallationStatus;
  readonly progress?: number;
  readonly error?: string;
  /** Takes precedence over the status. */
  readonly event?: NodeEvent;
  /** With `progress`: how far a step of the workflow is. */
  readonly step?: StepReport;
  /** With `disk_erased`. */
  readonly erasedDisk?: ErasedDisk;
  /** With `erased`: every disk that the node has. */
  readonly erasedDisks?: readonly string[];
}

/** The verb of the table that a report is; undefined when it tells only of the node itself. */
export const verbOf = ({ status, event }: NodeReport): string | undefined => event ?? status;

export const failureOf = ({ error }: NodeReport): string =>
  error === undefined || error === "" ? "no reason given" : error;

/**
 * Why a node that says that all its disks are erased is not believed; undefined when it is. Every disk that it names must have
 * been reported as read back, and every disk that it told of must be among them.
 */
export function whyNotErased({ facts }: Pick<Install, "facts">, named: readonly string[]): string | undefined {
  if (named.length === 0) return "erased was reported without naming a disk: is the driver of its disks missing?";
  const told = new Map(facts.erasedDisks.map((each) => [each.disk, each]));
  const untold = named.filter((disk) => !told.has(disk));
  if (untold.length > 0) return `erased was reported, but nothing of ${untold.join(", ")}`;
  const unverified = facts.erasedDisks.filter(({ verified }) => !verified).map(({ disk }) => disk);
  if (unverified.length > 0) return `erased was reported, but ${unverified.join(", ")} could not be verified`;
  const unnamed = [...told.keys()].filter((disk) => !named.includes(disk));
  if (unnamed.length > 0) return `erased was reported without naming ${unnamed.join(", ")}`;
}

/** What the node told of itself, as a patch of the facts: what it left out, and what is empty, stays as it was. */
export function toldBy(report: NodeReport, now: Date): JsonObject {
  const { ipAddress, hostname, vendor, model, serialNumber, systemUuid } = report;
  const told = Object.entries({ ipAddress, hostname, vendor, model, serialNumber, systemUuid }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== "",
  );
  return { ...Object.fromEntries(told), lastSeenAt: now.toISOString() };
}

export const REPORTED = "Status reported successfully";

/** What the node is answered, from the install as it was before. */
export function answerTo(report: NodeReport, before: Install, moved: boolean): string {
  if (!moved) return REPORTED;
  const attempt = before.facts.installAttempts + 1;
  switch (verbOf(report)) {
    case "started":
      return "Installation started";
    case "complete":
      return "Installation completed";
    case "failed":
      return attempt < MAX_INSTALL_ATTEMPTS
        ? `Installation failed (attempt ${attempt}), will retry`
        : `Installation failed after ${MAX_INSTALL_ATTEMPTS} attempts`;
    case "erased":
      return "Node erased and retired";
    default:
      return REPORTED;
  }
}
