import { randomUUID } from "node:crypto";
import { StepFailure } from "../../../src/kernel/errors.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { type ActingContext, collectSteps, defineStep } from "../../../src/runs/model/step.ts";
import { allSteps } from "../../../src/runs/steps/index.ts";
import { collectWorkflows, defineWorkflow, goTo, skip } from "../../../src/runs/workflows/workflow.ts";
import type { Part } from "./part-server.ts";

/** Where the parts are made, and what goes wrong: what the caller of the workflow gave. */
export type AssemblyParams = {
  readonly parts: string;
  /** By which the test knows what is whose. */
  readonly job: string;
  /** How often a frame is crooked. */
  readonly crooked?: string;
  /** The stage that fails for good. */
  readonly broken?: string;
};

type Acting = ActingContext<
  JsonObject,
  { readonly key: string; readonly nth: number },
  never,
  never,
  { readonly id: string }
>;
type Params = Readonly<Record<string, string>>;

async function ask<T>(
  { params, call }: { params: Params; call: Acting["call"] },
  method: string,
  path: string,
  body?: JsonObject,
) {
  const answer = await fetch(`${params.parts}${path}`, {
    method,
    signal: call.signal,
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as T;
}

/** By its receipt; where that was lost, by what was noted before. */
const findPart = (context: Acting): Promise<Part | null> =>
  ask(context, "GET", context.receipt ? `/parts/${context.receipt.id}` : `/parts?key=${context.evidence.key}`);

const faultOf = (stage: string, { params, evidence }: Pick<Acting, "params" | "evidence">): string =>
  stage === "frame" && evidence.nth < Number(params.crooked ?? 0) ? "crooked" : "";

/** A stage that makes a part, proves it by the receipt, and unmakes it. */
const making = (stage: string) =>
  defineStep({
    kind: `make_${stage}`,
    needs: [],
    defaults: { timeout: minutes(5) },
    parse: (payload) => payload,
    before: async ({ params, call }) => {
      const nth = await ask<number>({ params, call }, "GET", `/count?job=${params.job}&stage=${stage}`);
      return { key: randomUUID(), nth };
    },
    act: async (context: Acting) => {
      const { params, evidence } = context;
      if (params.broken === stage)
        throw new StepFailure("refused_by_device", `no ${stage} can be made`, { facts: { at: "bmc" } });
      const part = { job: params.job ?? "", stage, key: evidence.key, fault: faultOf(stage, context) };
      const { id } = await ask<Part>(context, "POST", "/parts", part);
      return { receipt: { id } };
    },
    probe: async (context: Acting) => {
      const part = await findPart(context);
      if (part === null && context.receipt === null) return "not_done";
      // It was made, and is gone: it was of no use, and whoever found that died before it was written.
      if (part === null) throw new StepFailure("install_failed", `${stage} is gone`, { disposition: "fail" });
      if (part.fault !== "")
        throw new StepFailure("install_failed", `${stage} is ${part.fault}`, { disposition: "fail" });
      return { state: "done", message: part.id };
    },
    undo: async (context: Acting) => {
      const part = await findPart(context);
      if (part !== null) await ask(context, "DELETE", `/parts/${part.id}`);
      return undefined;
    },
  });

/** Finds out what is wrong with a frame; makes nothing. */
const inspecting = defineStep({
  kind: "inspect_frame",
  needs: [],
  parse: (payload) => payload,
  before: async () => ({}),
  act: async () => undefined,
  probe: async () => ({ state: "done", verdict: "crooked" }),
});

export const assemblySteps = collectSteps([
  ...allSteps.values(),
  ...["base", "paint", "frame", "roof"].map(making),
  inspecting,
]);

/** Goes back a stage when a frame is crooked, skips the paint, and undoes what it made when it is canceled. */
export const assembly = defineWorkflow({
  kind: "assembly",
  doc: "Builds something of parts.",
  stages: [
    { name: "base", step: "make_base", compensation: "undo", maxRounds: 2, isSafe: true },
    { name: "paint", step: "make_paint", compensation: "undo", maxRounds: 2 },
    { name: "frame", step: "make_frame", compensation: "undo", maxRounds: 2, leadsTo: ["inspect", "roof"] },
    { name: "inspect", step: "inspect_frame", compensation: "nothing", leadsTo: ["base"] },
    { name: "roof", step: "make_roof", compensation: "undo" },
  ],
  next(history, { onwards }) {
    const last = history.at(-1);
    if (last?.stage === "base" && last.state === "SUCCEEDED") return skip("paint", "nobody asked for a colour");
    if (last?.stage === "frame" && last.state === "SUCCEEDED") return goTo("roof");
    if (last?.stage === "frame" && last.cause === "install_failed") return goTo("inspect");
    if (last?.stage === "inspect") return goTo("base");
    return onwards;
  },
});

export const assemblyWorkflows = collectWorkflows([assembly], assemblySteps);
