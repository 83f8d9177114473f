// @module-tag race
import { afterAll, beforeAll, describe, test, vi } from "vitest";
import { ONBOARDING_STAGES } from "../../../src/runs/workflows/fleet/onboarding-stages.ts";
import { setRoceAssignments } from "../../../src/services/fleet/roce.ts";
import { DyingOnboarding } from "../../support/fleet/dying-onboarding.ts";
import { openOnboardingBench, SITE } from "../../support/fleet/onboarding-bench.ts";
import { PROBED } from "../../support/processes/dying-steps.ts";
import { openProcessBench, type ProcessBench } from "../../support/processes/process-bench.ts";
import { tester } from "../../support/run-bench.ts";

/**
 * Two replicas carry out an onboarding, and die by kill -9 at each place that they come by: before what MAAS was told is on record, after,
 * and in the middle of a pass, as soon as a stage has looked at what MAAS shows. MAAS's own log shows each command once. Only the storage
 * may be set again, which changes nothing on a machine that is Ready.
 */
const FAIL_POINTS = ["controller:handled", "committer:after", PROBED];

/** Where somebody must have died, whatever the computer is like. In the middle of a pass that is every stage, also those that only read. */
const ALL_STAGES = Object.keys(ONBOARDING_STAGES).map((stage) => `, ${stage} probed`);
const CERTAIN = [
  "PENDING",
  ", create_or_find_in_maas announced",
  ", commission_node announced",
  ", wait_for_ready begun",
  ", configure_storage announced",
  ", apply_roce_phase2 announced",
  ", ensure_pxe_interface_auto announced",
  ", deploy_via_maas announced",
  ", wait_for_deployed begun",
  ", recover_for_datasource_retry announced",
  ", wait_for_agent_enrollment begun",
];

let processes: ProcessBench;
vi.setConfig({ maxConcurrency: 2 });
beforeAll(() => {
  processes = openProcessBench();
});
afterAll(() => processes.close());

describe("two replicas that onboard a node", { concurrent: true, timeout: 300_000 }, () => {
  test.for(FAIL_POINTS)(
    "and die at %s in each stage: MAAS is told everything once",
    async (failPoint, { expect, onTestFinished }) => {
      const bench = await openOnboardingBench({
        hosts: 2,
        speed: failPoint === "controller:handled" ? 0.01 : 500,
        isIdle: true,
      });
      onTestFinished(() => bench.close());
      const host = bench.nextHost("link_up");
      await bench.fault(host, "deploy_datasource_fails", { times: 1 });
      const links = [{ port: "ens1np0", subnet: "10.41.0.0/24", ipAddress: "10.41.0.17" }];
      await setRoceAssignments(bench.deps, tester, { site: SITE, nodes: [{ hostname: `node-${host.id}`, links }] });
      const { nodeId } = await bench.start(host, { policy: { enable_phase2_roce: true } });
      const dying = new DyingOnboarding(bench, processes, [failPoint]);
      await dying.untilCompleted(nodeId);

      const node = await bench.node(nodeId);
      expect(node.state.name).toBe("active");
      const calls = await bench.callsOn(node.facts.systemId ?? "");
      const repeatable = ["set_boot_disk", "set_storage_layout"];
      expect(calls.filter((call) => !repeatable.includes(call))).toEqual([
        "commission",
        "link_subnet", // the RoCE port
        "link_subnet", // the port that boots
        "deploy",
        "release",
        "deploy",
      ]);
      expect(new Set(calls)).toEqual(new Set(["commission", ...repeatable, "link_subnet", "deploy", "release"]));
      expect((await bench.machines()).filter(({ host: of }) => of === host.id)).toHaveLength(1);
      const deaths = dying.deaths();
      for (const certain of failPoint === PROBED ? ALL_STAGES : CERTAIN)
        expect(
          deaths.some((death) => death.includes(certain)),
          `somebody dies in${certain}: ${deaths.join("\n")}`,
        ).toBe(true);
    },
  );
});
