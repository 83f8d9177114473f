import { describe, expect, test } from "vitest";
import type { Choice, PastVisit } from "../workflow.ts";
import { DECOMMISSION_STAGES, DEPLOYMENT, type DecommissionStage } from "./decommission-stages.ts";
import { fleetDecommission, STAGES_OF } from "./fleet-decommission.ts";
import { DECOMMISSION_MODES, type DecommissionParam } from "./words.ts";

const CATALOG = [
  "disable_node",
  "force_release_allocations",
  "drain_node",
  "cleanup_storage",
  "scrub_gpu",
  "validate_clean_node",
  "load_site_config",
  "release_maas_node",
  "power_off_maas_node",
  "retire_gpuaas_node",
  "remove_gpuaas_node_record",
  "cleanup_secrets",
  "remove_maas_record",
];
/** The table of the specification: which stage belongs to which mode. */
// biome-ignore format: a table is read by its columns
const SPECIFIED = {
  disable_node:              ["soft_reset", "reimage", "full_decommission", "storage_cleanup"],
  force_release_allocations: ["soft_reset", "reimage", "full_decommission"],
  drain_node:                ["soft_reset", "reimage", "full_decommission", "storage_cleanup"],
  cleanup_storage:           ["soft_reset", "full_decommission", "storage_cleanup"],
  scrub_gpu:                 ["soft_reset", "full_decommission"],
  validate_clean_node:       ["soft_reset", "full_decommission", "storage_cleanup"],
  load_site_config:          ["reimage", "full_decommission"],
  release_maas_node:         ["reimage", "full_decommission"],
  power_off_maas_node:       ["full_decommission"],
  retire_gpuaas_node:        ["reimage", "full_decommission"],
  remove_gpuaas_node_record: ["full_decommission"],
  cleanup_secrets:           ["full_decommission"],
  remove_maas_record:        ["full_decommission"],
};

test("the thirteen stages are there, and the nine of a deployment behind them", () => {
  const names = Object.keys(DECOMMISSION_STAGES);
  expect(names.slice(0, 13).sort()).toEqual(CATALOG.toSorted());
  expect(names.slice(13)).toEqual(DEPLOYMENT);
});

test("each mode has the stages of the table, no more and no fewer", () => {
  for (const [stage, modes] of Object.entries(SPECIFIED))
    expect(
      DECOMMISSION_MODES.filter((mode) => STAGES_OF[mode].includes(stage as DecommissionStage)),
      stage,
    ).toEqual(modes);
});

test("the uninstall comes before the release, and nothing of MAAS before the node is retired", () => {
  const full = STAGES_OF.full_decommission;
  expect(full.indexOf("remove_gpuaas_node_record")).toBeLessThan(full.indexOf("release_maas_node"));
  for (const mode of ["full_decommission", "reimage"] as const)
    expect(STAGES_OF[mode].indexOf("retire_gpuaas_node")).toBeLessThan(STAGES_OF[mode].indexOf("release_maas_node"));
});

interface Walk {
  readonly params?: Readonly<Record<string, string>>;
  /** How stages end that do not succeed. */
  readonly ends?: Partial<Record<DecommissionStage, Partial<PastVisit<DecommissionStage>>>>;
}

/** All that a job comes through, by its own function; skipped stages in brackets. */
function walk(mode: DecommissionParam, { params = {}, ends = {} }: Walk = {}): string[] {
  const names = fleetDecommission.stages.map(({ name }) => name);
  const payloads = Object.fromEntries(names.map((name) => [name, { policy: {}, node_mode: "maas" }]));
  const history: PastVisit<DecommissionStage>[] = [];
  const seen: string[] = [];
  for (let at = 0; at < 60; at++) {
    const last = history.at(-1);
    const after = last === undefined ? names[0] : names[names.indexOf(last.stage) + 1];
    const onwards: Choice<DecommissionStage> =
      last?.state === "FAILED"
        ? { type: "give_up" }
        : after === undefined
          ? { type: "finish" }
          : { type: "go", stage: after };
    const choice = fleetDecommission.next(history, {
      params: { mode, node_mode: "maas", node_state: "active", ...params },
      payloads,
      onwards,
    });
    if (choice.type === "finish" || choice.type === "give_up") return [...seen, choice.type];
    const { stage } = choice;
    const round = 1 + history.filter((visit) => visit.stage === stage).length;
    const given = round === 1 ? (ends[stage] ?? {}) : {};
    const state = choice.type === "skip" ? "SKIPPED" : "SUCCEEDED";
    history.push({ stage, round, state, cause: null, verdict: "", carriedOver: false, ...given });
    seen.push(choice.type === "skip" ? `(${stage})` : stage);
  }
  throw new Error("it never ends");
}

describe("a job", () => {
  test.each([...DECOMMISSION_MODES, "retire"] as const)("of mode %s comes through its stages and ends", (mode) => {
    const ways = STAGES_OF[mode].filter((stage) => !/classify|recover/.test(stage));
    expect(walk(mode)).toEqual([...ways, "finish"]);
  });

  test("on a retired node begins where it was retired", () => {
    const full = walk("full_decommission", { params: { node_state: "retired" } });
    expect(full).toEqual([
      "(disable_node)",
      "(force_release_allocations)",
      "(drain_node)",
      "(cleanup_storage)",
      "(scrub_gpu)",
      "(validate_clean_node)",
      "load_site_config",
      "(retire_gpuaas_node)",
      "remove_gpuaas_node_record",
      "release_maas_node",
      "power_off_maas_node",
      "cleanup_secrets",
      "remove_maas_record",
      "finish",
    ]);
  });

  test("on a manual node leaves MAAS out", () => {
    expect(
      walk("full_decommission", { params: { node_mode: "manual" } }).filter((name) => name.startsWith("(")),
    ).toEqual(["(load_site_config)", "(release_maas_node)", "(power_off_maas_node)", "(remove_maas_record)"]);
  });

  test("of which somebody said that the agent is gone asks no agent", () => {
    expect(walk("full_decommission", { params: { agent: "gone" } }).filter((name) => name.startsWith("("))).toEqual([
      "(drain_node)",
      "(cleanup_storage)",
      "(scrub_gpu)",
      "(validate_clean_node)",
    ]);
  });

  test("gives up where a stage fails", () => {
    expect(walk("soft_reset", { ends: { drain_node: { state: "FAILED", cause: "drain_failed" } } })).toEqual([
      "disable_node",
      "force_release_allocations",
      "drain_node",
      "give_up",
    ]);
  });

  test("that deploys again repeats a deployment that found no datasource, as an onboarding does", () => {
    const failed = { state: "FAILED", cause: "deploy_failed" } as const;
    const seen = walk("reimage", {
      ends: { wait_for_deployed: failed, classify_deploy_failure: { verdict: "datasource" } },
    });
    expect(seen.slice(seen.indexOf("wait_for_deployed"))).toEqual([
      "wait_for_deployed",
      "classify_deploy_failure",
      "recover_for_datasource_retry",
      ...DEPLOYMENT.filter((stage) => !/classify|recover/.test(stage)),
      "finish",
    ]);
  });
});
