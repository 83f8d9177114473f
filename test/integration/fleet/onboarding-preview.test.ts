import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/kernel/errors.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import { ONBOARDING_STAGES } from "../../../src/runs/workflows/fleet/onboarding-stages.ts";
import type { NodeAsked } from "../../../src/services/fleet/node-input.ts";
import { onboardNode } from "../../../src/services/fleet/onboard.ts";
import { type OnboardingPreview, previewOnboarding } from "../../../src/services/fleet/previews/onboard-preview.ts";
import { setProfile } from "../../../src/services/fleet/profiles.ts";
import { registerMachine } from "../../../src/services/machine/machines.ts";
import { dumpDatabase } from "../../support/database-dump.ts";
import { giveAccount, type OnboardingBench, openOnboardingBench, SITE } from "../../support/fleet/onboarding-bench.ts";
import { NOTHING_ELSE, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import type { MaasHost } from "./maas-site.ts";

/** Nobody carries anything out, so that whatever changes was changed by the call. */
let bench: OnboardingBench;
beforeAll(async () => {
  bench = await openOnboardingBench({ hosts: 10, isIdle: true });
  await setProfile(bench.deps, tester, { site: SITE, name: "gpu", policy: {} });
  const plain = { require_hw_sync: false, max_deploy_retry_attempts: 0 };
  await setProfile(bench.deps, tester, { site: SITE, name: "plain", policy: plain });
  await bench.deps.db.execute(
    `insert into fleet_sites (name, url, is_enabled, created_by) values ('shut', 'http://192.0.2.3/MAAS', false, 'test')`,
  );
});
afterAll(() => bench.close());

const asked = (more: Partial<NodeAsked> = {}): NodeAsked => ({
  ...{ site: SITE, profile: "gpu", sku: "gpu8", hostname: "gpu-17", ipmiIp: "10.9.0.17", mode: "" },
  ...more,
});

/** Previews, and proves that nothing changed, here or in MAAS. */
async function preview(more: Partial<NodeAsked> = {}): Promise<OnboardingPreview> {
  const { db } = bench.deps;
  const [before, machines] = [await dumpDatabase(db), await bench.machines()];
  const answer = await previewOnboarding(bench.deps, tester, asked(more));
  expect(await dumpDatabase(db)).toEqual(before);
  expect(await bench.machines()).toEqual(machines);
  return answer;
}

let count = 0;
const onboard = (more: Partial<NodeAsked> = {}) =>
  onboardNode(bench.deps, tester, { ...asked(more), requestId: `request-${++count}` });

async function refusalOf(more: Partial<NodeAsked>) {
  const error = await onboard(more).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AppError)) throw new Error("it was not refused");
  return { message: error.message, field: error.detail.field ?? "", next: error.detail.next ?? "" };
}

const machine = (id: string, bmcEndpoint: string, provider = "maas") =>
  registerMachine(bench.deps, tester, {
    ...{ id, labels: {} },
    spec: {
      ...NOTHING_ELSE,
      ...{ serial: "", macAddresses: [], sshEndpoint: "", sshHostKey: "", jumpHosts: [] },
      ...{ provider, bmcEndpoint, bmcProtocol: provider === "maas" ? "ipmi" : "" },
    },
  });

const inMaas = (host: MaasHost, hostname: string) =>
  bench.maas.control<{ system_id: string }>("POST", `/maas/hosts/${host.id}/discover`, { hostname });

describe("a preview of an onboarding", () => {
  test("of a node that nobody knows registers a machine, and comes through what the profile wants", async () => {
    const shown = await preview();
    expect(shown).toMatchObject({ machineId: null, registersMachine: true, obstacles: [] });
    expect(shown.maas).toMatchObject({ outcome: "create", machine: null });
    expect(shown.notes).toEqual([expect.stringContaining("credentials_missing")]);
    expect(shown.stages.map(({ stage }) => stage)).toEqual(Object.keys(ONBOARDING_STAGES));
    expect(shown.stages.filter(({ skipped }) => skipped !== "")).toEqual([
      expect.objectContaining({ stage: "apply_roce_phase2", skipped: "the profile assigns no RoCE addresses" }),
    ]);
    expect(shown.stages.filter(({ onlyIf }) => onlyIf !== "").map(({ stage, rounds }) => [stage, rounds])).toEqual([
      ["classify_deploy_failure", 3],
      ["recover_for_datasource_retry", 2],
    ]);
  });

  test("names the stages that another profile leaves out, and takes less time", async () => {
    const [usual, plain] = [await preview(), await preview({ profile: "plain" })];
    expect(plain.stages.filter(({ skipped }) => skipped !== "").map(({ stage, skipped }) => [stage, skipped])).toEqual([
      ["apply_roce_phase2", "the profile assigns no RoCE addresses"],
      ["ensure_hardware_sync_configured", "the profile does not require hardware sync"],
      ["wait_for_hardware_sync_healthy", "the profile does not require hardware sync"],
    ]);
    expect(plain.stages.find(({ stage }) => stage === "recover_for_datasource_retry")?.rounds).toBe(0);
    expect(plain.atMost).toBeGreaterThan(hours(1));
    expect(plain.atMost).toBeLessThan(usual.atMost ?? 0);
  });

  test("of a manual node skips all but the enrolment, and does not ask MAAS", async () => {
    const shown = await preview({ mode: "manual", ipmiIp: "" });
    expect(shown.stages.filter(({ skipped }) => skipped === "").map(({ stage }) => stage)).toEqual([
      "wait_for_agent_enrollment",
    ]);
    expect(shown).toMatchObject({ registersMachine: true, maas: { outcome: "none" } });
    // This server was not told where nodes reach it.
    expect(shown.obstacles).toEqual([await refusalOf({ mode: "manual", ipmiIp: "" })]);
    const reached = { ...bench.deps, fleetServer: "http://192.0.2.1:8080" };
    const free = await previewOnboarding(reached, tester, asked({ mode: "manual", ipmiIp: "" }));
    expect(free).toMatchObject({ obstacles: [], notes: [expect.stringContaining("its job starts once")] });
  });

  test("uses the machine that is on record with the BMC, and the real call does as well", async () => {
    await machine("m-known", "10.9.1.1");
    const node = { hostname: "gpu-known", ipmiIp: "10.9.1.1" };
    const shown = await preview(node);
    expect(shown).toMatchObject({ machineId: "m-known", registersMachine: false, obstacles: [] });
    expect(shown.notes).toEqual([expect.stringContaining("set-credentials m-known")]);
    const host = bench.maas.hosts[0];
    if (!host) throw new Error("the site has no servers");
    await giveAccount(bench.deps, "m-known", host);
    expect((await preview(node)).notes).toEqual([]);
    expect((await onboard(node)).machineId).toBe("m-known");
  });

  test.each([
    ["a site that there is not", async () => ({ site: "moon" })],
    ["a site that is disabled", async () => ({ site: "shut" })],
    ["a profile that there is not", async () => ({ profile: "b200" })],
    [
      "a machine that others work on",
      async () => {
        await machine("m-ours", "10.9.2.1", "datacenter");
        return { ipmiIp: "10.9.2.1" };
      },
    ],
    [
      "a machine that is in service",
      async () => {
        await machine("m-serves", "10.9.2.2");
        await bench.deps.db.execute("update machines set state = 'IN_SERVICE' where id = 'm-serves'");
        return { ipmiIp: "10.9.2.2" };
      },
    ],
    [
      "a name that a live node has",
      async () => {
        await onboard({ hostname: "gpu-twin", ipmiIp: "10.9.2.3" });
        return { hostname: "gpu-twin", ipmiIp: "10.9.2.4" };
      },
    ],
    [
      "a BMC that a live node has",
      async () => {
        await onboard({ hostname: "gpu-bmc", ipmiIp: "10.9.2.5" });
        return { hostname: "gpu-other", ipmiIp: "10.9.2.5" };
      },
    ],
  ])("that meets with %s says what the real call is refused with", async (_what, given) => {
    const more = await given();
    const { obstacles } = await preview(more);
    expect(obstacles[0]).toEqual(await refusalOf(more));
  });

  test("with an account lacks none, and is refused who may not give one, in the same words", async () => {
    expect((await preview({ bmcUsername: "maas" })).notes).toEqual([]);
    const operator = { ...tester, roles: ["operator"] } as const;
    const more = { bmcUsername: "maas", bmcPassword: "secret" };
    const { obstacles } = await previewOnboarding(bench.deps, operator, asked({ bmcUsername: "maas" }));
    const real = onboardNode(bench.deps, operator, { ...asked(more), requestId: "request-operator" });
    expect(obstacles.map(({ field }) => field)).toEqual(["bmc_username"]);
    await expect(real).rejects.toThrow(obstacles[0]?.message);
  });

  test("lists all that is in the way, and refuses what is wrong whatever the moment", async () => {
    const { obstacles, stages, atMost, maas } = await preview({ site: "shut", ipmiIp: "10.9.2.5" });
    expect(obstacles.map(({ field }) => field)).toEqual(["site", "profile", "ipmi_ip"]);
    expect([stages, atMost, maas.outcome]).toEqual([[], null, "unknown"]);
    await expect(preview({ hostname: "GPU 1" })).rejects.toThrow(/labels of letters/);
  });
});

describe("what MAAS has for the node", () => {
  test("is shown as it is, with what would be done with it", async () => {
    const host = bench.nextHost();
    const { system_id } = await inMaas(host, "gpu-seen");
    expect((await preview({ hostname: "gpu-seen" })).maas).toMatchObject({
      outcome: "adopt",
      machine: { systemId: system_id, hostname: "gpu-seen", state: "New" },
    });
    await inMaas(bench.nextHost(), "gpu-seen");
    expect((await preview({ hostname: "gpu-seen" })).maas).toMatchObject({
      ...{ outcome: "refuse", failureClass: "conflicting_candidates", machine: null },
    });
  });

  test("is refused where another node is bound to it", async () => {
    const { system_id } = await inMaas(bench.nextHost(), "gpu-bound");
    const { id } = await onboard({ hostname: "gpu-binds", ipmiIp: "10.9.3.1" });
    await bench.deps.db.execute(
      "update fleet_nodes set facts = facts || jsonb_build_object('systemId', $2::text) where id = $1",
      [id, system_id],
    );
    expect((await preview({ hostname: "gpu-bound" })).maas).toMatchObject({
      outcome: "refuse",
      failureClass: "identity_mismatch",
      message: expect.stringContaining("belongs to node gpu-binds"),
    });
  });

  test("is unknown while MAAS does not answer, and that is no error", async () => {
    const { id } = await bench.maas.control<{ id: string }>("POST", "/faults", {
      device: "maas",
      fault: { type: "status", status: 503 },
    });
    const { maas, obstacles, stages } = await preview();
    expect(maas).toMatchObject({ outcome: "unknown", machine: null, message: expect.stringContaining("503") });
    expect([obstacles, stages.length]).toEqual([[], 16]);
    await bench.unfault(id);
    expect((await preview()).maas.outcome).toBe("create");
  });
});
