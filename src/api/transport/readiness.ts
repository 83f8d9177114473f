import { setTimeout as pause } from "node:timers/promises";
import { messageOf } from "../../kernel/errors.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import { withoutSecretText } from "../../telemetry/redaction.ts";

/** Says why the part is not ready; nothing when it is, or a remark that people should read all the same. */
export type ReadyCheck = (signal: AbortSignal) => Promise<string | null | { readonly remark: string }>;
/** By name: `database`, `migrations`, `engine`. */
export type ReadyChecks = Readonly<Record<string, ReadyCheck>>;

export interface Readiness {
  readonly ready: boolean;
  /** `ok`, perhaps with a remark, or why not, for each check. */
  readonly checks: Readonly<Record<string, string>>;
}

const CHECK_TIMEOUT = seconds(2);

/** Whether the process can do its work. */
export async function readReadiness(checks: ReadyChecks, timeout: Duration = CHECK_TIMEOUT): Promise<Readiness> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, await answerOf(check, timeout)] as const),
  );
  return {
    ready: results.every(([, answer]) => typeof answer !== "string"),
    checks: Object.fromEntries(results.map(([name, answer]) => [name, textOf(answer)])),
  };
}

/** Tells, again and again until the signal aborts, whether the process is ready. */
export async function followReadiness(
  checks: ReadyChecks,
  { every, tell }: { readonly every: Duration; readonly tell: (ready: boolean) => void },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const { ready } = await readReadiness(checks);
    if (signal.aborted) return;
    tell(ready);
    await pause(every, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/** A check that throws or does not end is a reason as well. */
async function answerOf(check: ReadyCheck, timeout: Duration): ReturnType<ReadyCheck> {
  const signal = AbortSignal.timeout(timeout);
  const late = new Promise<string>((resolve) => {
    signal.addEventListener("abort", () => resolve(`no answer within ${timeout} ms`), { once: true });
  });
  try {
    return await Promise.race([check(signal), late]);
  } catch (error) {
    // Anybody may read this answer.
    return withoutSecretText(messageOf(error));
  }
}

function textOf(answer: Awaited<ReturnType<ReadyCheck>>): string {
  if (typeof answer === "string") return answer;
  return answer === null ? "ok" : `ok, but ${answer.remark}`;
}
