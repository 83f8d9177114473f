import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { FleetTaskType } from "./fleet-task.ts";

const isTrue = (field: string) => (result: JsonObject) => result[field] === true;
const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

interface Proof {
  readonly holds: (result: JsonObject) => boolean;
  /** What the result of a task that was done must say. */
  readonly wants: string;
}

/** An agent that says "completed" must also say what it did: without that, nothing is believed. */
const PROOFS: Readonly<Record<FleetTaskType, Proof>> = {
  "node.drain": { holds: isTrue("drained"), wants: "drained: true" },
  "node.cleanup_storage": {
    holds: ({ devices }) =>
      Array.isArray(devices) &&
      devices.length > 0 &&
      devices.every((device: JsonObject | null) => device?.wiped === true),
    wants: "at least one device, each with wiped: true",
  },
  "node.scrub_gpu": { holds: isTrue("scrubbed"), wants: "scrubbed: true" },
  "node.validate_clean": {
    holds: ({ clean, findings }) => clean === true && isEmptyList(findings),
    wants: "clean: true and no findings",
  },
  "node.uninstall": { holds: isTrue("uninstalled"), wants: "uninstalled: true" },
  "diag.health_probe": { holds: ({ health }) => health === "healthy", wants: "health: healthy" },
};

/** What is wrong with the result of a task that the agent says it has done; undefined where it proves the work. */
export function problemOf(type: FleetTaskType, result: JsonObject | null): string | undefined {
  const { holds, wants } = PROOFS[type];
  if (result !== null && holds(result)) return undefined;
  return `the result does not say ${wants}: ${JSON.stringify(result).slice(0, 300)}`;
}
