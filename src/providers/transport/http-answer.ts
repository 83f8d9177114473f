import { type Carried, hideSecrets } from "./hide-secrets.ts";
import { oneLine } from "./one-line.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** What was kept of a list that was read as one; the text is empty then. */
  readonly list?: readonly unknown[];
  readonly certificateFingerprint?: string;
}

/** Seconds or a date, as HTTP has it. */
export function retryAfter(header: string | string[] | undefined, now: number = Date.now()): number | undefined {
  const text = Array.isArray(header) ? header[0] : header;
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1_000;
  // HTTP's dates all end so; Date.parse alone would see a date in "-5".
  const date = text.trim().endsWith("GMT") ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

const LONGEST_EXCERPT = 300;

/** Fit for a message to people: one line, not long, and without what we sent in confidence, should the device repeat it. */
export function excerpt(carried: Carried, text: string): string {
  const line = oneLine(hideSecrets(text, carried), LONGEST_EXCERPT + 1);
  return line.length > LONGEST_EXCERPT ? `${line.slice(0, LONGEST_EXCERPT)}…` : line;
}

/** Undefined for what is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
