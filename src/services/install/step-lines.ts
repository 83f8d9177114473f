import type { Json, JsonObject } from "../../kernel/lifecycle.ts";
import type { InstallStep } from "../../lifecycles/install/install.ts";
import { isOver } from "../../lifecycles/install/install-steps.ts";
import type { WorkflowStep } from "../../lifecycles/install/workflow.ts";

export interface StepLines {
  /** As the table has it: the environment writes to no disk unless it is `installing`. */
  readonly state: string;
  /** Behind a step that rebooted the machine. */
  readonly resumes: boolean;
  readonly steps: readonly (readonly [WorkflowStep, InstallStep])[];
  readonly fill: (text: string) => string;
}

const FORMAT = "millwright-steps 1";

/**
 * The steps in lines that a shell without a JSON parser can read: words without blanks, texts in base64.
 *
 *     step 3 script 60 rollback 2 5 installed todo
 *     name Q29uZmlndXJl
 *     set script ZWNobyBoZWxsbw==
 */
export const writeStepLines = ({ state, resumes, steps, fill }: StepLines): string =>
  [
    FORMAT,
    `state ${state}`,
    ...(resumes ? ["resumes"] : []),
    ...steps.flatMap(([step, seen]) => linesOf(step, isOver(seen), fill)),
    "end",
    "",
  ].join("\n");

function linesOf(step: WorkflowStep, isDone: boolean, fill: (text: string) => string): string[] {
  const { sequence, type, timeout_seconds, on_failure, max_retries, retry_delay_seconds, next_state } = step;
  const words = [sequence, type, timeout_seconds, on_failure, max_retries, retry_delay_seconds, next_state ?? "-"];
  return [
    `step ${words.join(" ")} ${isDone ? "done" : "todo"}`,
    `name ${base64(step.name)}`,
    ...Object.entries(step.config).map(([name, value]) => `set ${name} ${base64(valueText(name, value, fill))}`),
  ];
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

function valueText(name: string, value: Json, fill: (text: string) => string): string {
  if (name === "partitions" && Array.isArray(value))
    return value.map((each) => partitionLine(each as JsonObject)).join("\n");
  if (typeof value === "string") return name === "url" ? fill(value) : value;
  return JSON.stringify(value);
}

/** Its size in MiB, or 0 for what is left; its type; whether it boots. */
const partitionLine = ({ size_mib = 0, type = "83", bootable = false }: JsonObject): string =>
  `${size_mib} ${type} ${bootable === true ? "80" : "00"}`;
