import { describe, expect, test } from "vitest";
import { aMachine, anSsh, exited } from "../../../../test/support/runs/step-bench.ts";
import type { RemoteExec, RemoteScript } from "../../../capabilities/remote-exec.ts";
import type { Outcome } from "../../../kernel/outcome.ts";
import type { Machine } from "../../../lifecycles/machine/machine.ts";
import { type RunContext, runHandlers } from "../../executor/executor.ts";
import { BegunActions } from "../../executor/step/begun-actions.ts";
import * as visits from "../../executor/step/visit.ts";
import type { Heard } from "../../model/heard-script.ts";
import type { RunThing } from "../../model/lifecycle.ts";
import type { Step } from "../../model/plan/plan.ts";
import type { StepStatus } from "../../model/run.ts";
import { collectSteps } from "../../model/step.ts";
import type { StepTargets } from "../../model/targets.ts";
import { machineTarget } from "../../targets/machine.ts";
import { machineStepParts } from "../../targets/machine-steps.ts";
import type { RunOn } from "../../targets/target-kind.ts";
import { net } from "../net.ts";
import { ssh } from "../ssh.ts";

const start = new Date("2026-01-01T00:00:00Z");
const PAYLOADS = { ssh: { script_ref: "a.sh", args: {} }, net: { action: "reconfigure", params: {} } };
const stepOf = (kind: keyof typeof PAYLOADS) => ({
  name: "only",
  kind,
  timeoutSeconds: 60,
  maxRetries: 0,
  payload: PAYLOADS[kind],
});

/** A machine on which a script was started, and a run that looks at it as it is on record then. */
class Bench {
  readonly out = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  state = "running";
  /** What the run's log has. */
  readonly logged = { stdout: "", stderr: "" };
  heard: Heard | null = null;
  visit: StepStatus;
  cancelRequestedAt: Date | null = null;
  readAt: number[] = [];
  readonly step: ReturnType<typeof stepOf>;

  constructor(kind: keyof typeof PAYLOADS = "ssh") {
    this.step = stepOf(kind);
    this.visit = this.begunUnder("m1");
  }

  begunUnder(mark: string): StepStatus {
    const evidence = { mark, script: "sha256:1" };
    return { ...visits.beginVisit(this.step, start), evidence, actingAt: start, actedAt: start, toTakeBack: evidence };
  }

  write(text: string | Uint8Array, stream: "stdout" | "stderr" = "stdout"): void {
    this.out[stream] = Buffer.concat([this.out[stream], Buffer.from(text)]);
  }

  private async exec({ script, env, onOutput }: RemoteScript) {
    if (!script.includes("MILLWRIGHT_FROM")) return exited(0, `${this.state}\n`);
    const from = Number(env.MILLWRIGHT_FROM);
    this.readAt.push(from);
    const rest = this.out[env.MILLWRIGHT_STREAM as "stdout" | "stderr"].subarray(from);
    onOutput?.(rest, "stdout");
    return exited(0);
  }

  /** One pass, by a process that knows nothing but what is on record. */
  async pass(is: "written" | "lost" = "written"): Promise<Outcome> {
    const run = {
      id: "run-1",
      state: { name: "RUNNING" },
      parent: null,
      holder: { kind: "run", id: "run-1" },
      children: [],
      target: {
        kind: "machine",
        id: aMachine().id,
        thing: {
          ...aMachine(),
          state: { name: "PROVISIONING" },
          conditions: [],
          facts: { residue: [], residueRecords: [], cordoned: null },
        },
      },
      plan: { planId: "plan/test", displayName: "", steps: [this.step] },
      params: {},
      action: "start",
      cancelRequestedAt: this.cancelRequestedAt,
      facts: {
        scripts: {},
        steps: [this.visit],
        residue: [],
        residueRecords: [],
        takeBackFirst: null,
        compensateFirst: null,
        heard: this.heard,
      },
    } as unknown as RunThing;
    const steps = collectSteps([ssh, net]);
    const targets = { ssh: async () => anSsh, script: async () => ({ ref: "a.sh", digest: "sha256:1", text: "" }) };
    const context = {
      call: { signal: new AbortController().signal, subject: "test", mayTouchDevice: (wanted: number) => wanted },
      clock: { now: () => start, monotonic: () => 0 },
      steps,
      target: machineTarget,
      begun: new BegunActions(),
      provider: {
        name: "test",
        can: { exec: { run: (_: unknown, script: RemoteScript) => this.exec(script) } as unknown as RemoteExec },
      },
      partsOf: (on: RunOn<Machine>, step: Step) =>
        machineStepParts(on, step, { targets: targets as unknown as StepTargets, steps }),
      instance: `process ${Math.random()}`,
    } as unknown as RunContext;
    const outcome = await runHandlers.RUNNING(run, context);
    if (is === "written") this.commit(outcome);
    return outcome;
  }

  private commit({ facts, effects = [] }: Outcome): void {
    if (facts?.heard !== undefined) this.heard = facts.heard as Heard;
    for (const effect of effects)
      if (effect.type === "log")
        for (const { text, stream } of effect.lines)
          if (typeof text !== "string") this.logged[stream] += Buffer.from(text).toString();
  }
}

describe("what a script wrote is in the log once", () => {
  test("when another process goes on after a crash, which knows only what is on record", async () => {
    const bench = new Bench();
    bench.write("one\n");
    bench.write("oops\n", "stderr");
    await bench.pass();
    bench.write("two\n");
    await bench.pass("lost"); // killed before it was written
    bench.write("three\n");
    bench.write("again\n", "stderr");
    await bench.pass();
    expect(bench.logged).toEqual({ stdout: "one\ntwo\nthree\n", stderr: "oops\nagain\n" });
    expect(bench.readAt).toEqual([0, 0, 4, 5, 4, 5]);
  });

  test("byte for byte, however often processes change within a character", async () => {
    const bench = new Bench();
    const whole = Buffer.from("café 🚀 fini\n");
    for (let end = 0; end < whole.length; end += 1) {
      bench.write(whole.subarray(end, end + 1));
      await bench.pass(end % 3 === 0 ? "lost" : "written");
    }
    bench.state = "ended 0";
    await bench.pass();
    expect(bench.logged.stdout).toBe(whole.toString());
  });

  test.each(["lost", "written"] as const)("when a cancel came, and the pass before it was %s", async (before) => {
    const bench = new Bench("net"); // which is heard of also while it is taken back
    bench.write("one\n");
    await bench.pass();
    bench.write("two\n");
    await bench.pass(before);
    bench.cancelRequestedAt = start;
    bench.state = "ended 1";
    bench.write("three\n");
    await bench.pass("lost");
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
    expect(bench.logged.stdout).toBe("one\ntwo\nthree\n");
  });

  test("and how far, is written by a pass that says something only", async () => {
    const bench = new Bench();
    bench.write("one\n");
    expect((await bench.pass()).facts).toMatchObject({ heard: { mark: "m1", stdout: 4, stderr: 0 } });
    expect((await bench.pass()).facts?.heard).toBeUndefined();
  });

  test("and from its beginning, when another one was begun", async () => {
    const bench = new Bench();
    bench.write("the first\n");
    await bench.pass();
    bench.visit = bench.begunUnder("m2");
    bench.out.stdout = Buffer.from("the second, which writes more\n");
    await bench.pass();
    await bench.pass();
    expect(bench.logged.stdout).toBe("the first\nthe second, which writes more\n");
  });
});
