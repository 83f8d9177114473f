import { describe, expect, test } from "vitest";
import type { RemoteExec, RemoteScript } from "../../capabilities/remote-exec.ts";
import type { RunThing } from "../lifecycle.ts";
import type { Step } from "../plan.ts";
import { type RunContext, stepContext } from "../run-context.ts";
import type { RunLog } from "../run-log.ts";
import { OutputReader } from "./script-output.ts";
import { aMachine, anSsh, exited } from "./step-bench.ts";

describe("what a script wrote until its run was canceled", () => {
  /** A machine on which the script writes more and more, and looks at it by a run as it is on record then. */
  function looking() {
    let written = "";
    const said: string[] = [];
    const reader = new OutputReader();
    const run = async (_target: unknown, script: RemoteScript) => {
      const rest = Buffer.from(written).subarray(Number(script.env.MILLWRIGHT_FROM));
      if (script.env.MILLWRIGHT_STREAM === "stdout") script.onOutput?.(rest, "stdout");
      return exited(0);
    };
    return {
      said,
      async look(more: string, onRecord: Pick<RunThing, "basis" | "cancelRequestedAt">) {
        written += more;
        const context = stepContext(
          { id: "run-1", machine: aMachine(), params: {}, facts: { scripts: {} }, ...onRecord } as unknown as RunThing,
          { name: "only", kind: "ssh", payload: {} } as Step,
          { provider: { name: "test", can: {} }, targetsOf: () => ({}) } as unknown as RunContext,
          { say: (text: string | Uint8Array) => void said.push(Buffer.from(text).toString()) } as unknown as RunLog,
        );
        const exec = { run } as unknown as RemoteExec;
        await reader.passOn({ mark: "m1", exec, ssh: anSsh, call: context.call }, context, { is: "running" });
      },
    };
  }
  const cancelRequestedAt = new Date();

  test("is said again when the cancel came before the look that said it was written", async () => {
    const { look, said } = looking();
    await look("one\n", { basis: 1, cancelRequestedAt: null });
    await look("two\n", { basis: 2, cancelRequestedAt: null }); // the cancel ends this look: nothing of it is kept
    await look("three\n", { basis: 3, cancelRequestedAt });
    expect(said).toEqual(["one\n", "two\n", "two\nthree\n"]);
  });

  test("is not said twice when that look was written before the cancel", async () => {
    const { look, said } = looking();
    await look("one\n", { basis: 1, cancelRequestedAt: null });
    await look("two\n", { basis: 2, cancelRequestedAt: null });
    await look("three\n", { basis: 4, cancelRequestedAt });
    expect(said).toEqual(["one\n", "two\n", "three\n"]);
  });

  test("is said again when the look after the cancel is not written either", async () => {
    const { look, said } = looking();
    await look("one\n", { basis: 1, cancelRequestedAt: null });
    await look("two\n", { basis: 2, cancelRequestedAt });
    await look("", { basis: 2, cancelRequestedAt });
    expect(said).toEqual(["one\n", "one\ntwo\n", "one\ntwo\n"]);
  });
});
