import { describe, expect, test } from "vitest";
import { DEFAULT_POLICY, type FleetPolicy } from "../../../lifecycles/fleet-node/policy.ts";
import type { Given, PastVisit } from "../workflow.ts";
import { fleetOnboarding } from "./fleet-onboarding.ts";
import { ONBOARDING_STAGES, type OnboardingStage } from "./onboarding-stages.ts";

/** The sixteen stages of docs/specs/maas-node.md, in their order. */
const SEED = [
  "load_site_config",
  "resolve_power_credentials",
  "create_or_find_in_maas",
  "commission_node",
  "wait_for_ready",
  "configure_storage",
  "apply_roce_phase2",
  "ensure_pxe_interface_auto",
  "render_cloud_init",
  "deploy_via_maas",
  "wait_for_deployed",
  "classify_deploy_failure",
  "recover_for_datasource_retry",
  "ensure_hardware_sync_configured",
  "wait_for_hardware_sync_healthy",
  "wait_for_agent_enrollment",
];

test("the stages are those of the specification, no more and no fewer", () => {
  expect(Object.keys(ONBOARDING_STAGES)).toEqual(SEED);
});

type Past = Pick<PastVisit<OnboardingStage>, "stage"> & Partial<PastVisit<OnboardingStage>>;

function nextAfter(
  history: readonly Past[],
  { mode = "maas", ...policy }: Partial<FleetPolicy> & { mode?: string } = {},
) {
  const visits = history.map((visit, at) => ({
    ...{ state: "SUCCEEDED" as const, cause: null, verdict: "", carriedOver: false },
    round: history.slice(0, at + 1).filter(({ stage }) => stage === visit.stage).length,
    ...visit,
  }));
  const last = visits.at(-1);
  const at = SEED.indexOf(last?.stage ?? "");
  const after = SEED[at + 1] as OnboardingStage | undefined;
  const payload = { policy: { ...DEFAULT_POLICY, ...policy }, node_mode: mode };
  const given: Given<OnboardingStage> = {
    params: {},
    payloads: Object.fromEntries(SEED.map((name) => [name, payload])),
    onwards:
      last?.state === "FAILED"
        ? { type: "give_up" }
        : after === undefined
          ? { type: "finish" }
          : { type: "go", stage: after },
  };
  const choice = fleetOnboarding.next(visits, given);
  return "stage" in choice && choice.stage !== undefined ? `${choice.type} ${choice.stage}` : choice;
}

const FAILED: Past = { stage: "wait_for_deployed", state: "FAILED", cause: "deploy_failed" };
const found = (verdict: string): Past => ({ stage: "classify_deploy_failure", verdict });
const RETRIED: Past = { stage: "recover_for_datasource_retry" };

describe("after a deployment", () => {
  test("that succeeded, nothing is classified", () => {
    expect(nextAfter([{ stage: "wait_for_deployed" }])).toBe("go ensure_hardware_sync_configured");
  });

  test("that failed, the reason is found first; other failures end the run", () => {
    expect(nextAfter([FAILED])).toBe("go classify_deploy_failure");
    expect(nextAfter([{ ...FAILED, cause: "machine_deleted_in_maas" }])).toEqual({ type: "give_up" });
  });

  test("a missing datasource is retried as often as the profile says, and then a person is called", () => {
    const once = [FAILED, found("datasource")];
    expect(nextAfter(once)).toBe("go recover_for_datasource_retry");
    expect(nextAfter([...once, RETRIED])).toBe("go ensure_pxe_interface_auto");
    expect(nextAfter([...once, RETRIED, ...once])).toBe("go recover_for_datasource_retry");
    const gaveUp = { type: "give_up", needsPerson: true, cause: { code: "datasource_failed_repeatedly" } };
    expect(nextAfter([...once, RETRIED, ...once, RETRIED, ...once])).toMatchObject(gaveUp);
    expect(nextAfter(once, { max_deploy_retry_attempts: 0 })).toMatchObject(gaveUp);
    expect(nextAfter(once, { enable_deploy_retry_on_datasource_failure: false })).toMatchObject(gaveUp);
  });

  test("any other failure calls a person at once", () => {
    const gaveUp = { type: "give_up", needsPerson: true, cause: { code: "deploy_failed" } };
    expect(nextAfter([FAILED, found("other")])).toMatchObject(gaveUp);
  });

  test("a person who asks again gets one more deployment, and the bound counts from there", () => {
    const before = [FAILED, found("datasource"), RETRIED, FAILED].map((visit) => ({ ...visit, carriedOver: true }));
    expect(nextAfter([...before, found("other")])).toBe("go recover_for_datasource_retry");
    expect(nextAfter([...before, found("datasource"), RETRIED, FAILED, found("datasource")])).toBe(
      "go recover_for_datasource_retry",
    );
  });

  test("one that has come about meanwhile goes on", () => {
    expect(nextAfter([FAILED, found("deployed")])).toBe("go ensure_hardware_sync_configured");
  });
});

describe("a stage is skipped", () => {
  test("by the profile: RoCE unless wanted, hardware sync unless required", () => {
    expect(nextAfter([{ stage: "configure_storage" }])).toBe("skip apply_roce_phase2");
    expect(nextAfter([{ stage: "configure_storage" }], { enable_phase2_roce: true })).toBe("go apply_roce_phase2");
    const off = { require_hw_sync: false };
    expect(nextAfter([{ stage: "wait_for_deployed" }], off)).toBe("skip ensure_hardware_sync_configured");
    expect(nextAfter([{ stage: "ensure_hardware_sync_configured" }], off)).toBe("skip wait_for_hardware_sync_healthy");
  });

  test("where the node is manual: all but the enrolment of its agent", () => {
    const path: string[] = [];
    const history: Past[] = [];
    for (
      let next = nextAfter(history, { mode: "manual" });
      typeof next === "string";
      next = nextAfter(history, { mode: "manual" })
    ) {
      path.push(next);
      history.push({
        stage: next.split(" ")[1] as OnboardingStage,
        state: next.startsWith("skip") ? "SKIPPED" : "SUCCEEDED",
      });
    }
    const skipped = SEED.filter((name) => !name.startsWith("classify") && !name.startsWith("recover")).slice(0, -1);
    expect(path).toEqual([...skipped.map((name) => `skip ${name}`), "go wait_for_agent_enrollment"]);
  });
});
