import { CAUSES, type Cause, type CauseCode, type CauseFacts, FACTS, PEERS } from "./causes.ts";

const NUMERIC: ReadonlySet<string> = new Set<keyof CauseFacts>(["status", "exit_code"]);

/**
 * As it was stored; null where none was. Rows of a version that did not name causes have none, and a code of a newer version counts
 * as `unknown`, so that replicas of two versions read each other's rows. Facts that are not ours are left out.
 */
export function parseCause(stored: unknown): Cause | null {
  if (typeof stored !== "object" || stored === null || !("code" in stored)) return null;
  if (!isCauseCode(stored.code)) return { code: "unknown" };
  return causeWith(stored.code, "facts" in stored && stored.facts !== null ? stored.facts : {});
}

const isCauseCode = (text: unknown): text is CauseCode => typeof text === "string" && Object.hasOwn(CAUSES, text);

function causeWith(code: CauseCode, stored: unknown): Cause {
  if (typeof stored !== "object" || stored === null) return { code };
  const facts: CauseFacts = Object.fromEntries(Object.entries(stored).filter(isFact));
  return Object.keys(facts).length === 0 ? { code } : { code, facts };
}

function isFact([name, value]: [string, unknown]): boolean {
  if (!Object.hasOwn(FACTS, name)) return false;
  if (name === "at") return typeof value === "string" && Object.hasOwn(PEERS, value);
  return typeof value === (NUMERIC.has(name) ? "number" : "string");
}

/** For maps of texts, such as the details of a run's error: the code under `cause`, and each fact under its own name. */
export const causeDetails = ({ code, facts = {} }: Cause): Record<string, string> => ({
  ...Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, String(value)])),
  cause: code,
});

/** Null where the details name none. */
export function causeInDetails({ cause, ...others }: Readonly<Record<string, string>>): Cause | null {
  if (cause === undefined) return null;
  const facts = Object.entries(others).map(([name, text]) => [name, NUMERIC.has(name) ? Number(text) : text]);
  return parseCause({ code: cause, facts: Object.fromEntries(facts) });
}
