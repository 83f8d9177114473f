import { describe, expect, onTestFinished, test } from "vitest";
import { SiteReconciler } from "../../../src/engine/fleet/site-reconciler.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { signedHeader } from "../../../src/providers/maas/sign-in.ts";
import { ONBOARDING_STAGES } from "../../../src/runs/workflows/fleet/onboarding-stages.ts";
import { createCloudInit } from "../../../src/services/catalog/cloud-init.ts";
import { jobViewOf } from "../../../src/services/fleet/job-view.ts";
import { adoptLedOn } from "../../../src/services/fleet/node-actions.ts";
import { setRoceAssignments } from "../../../src/services/fleet/roce.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { getMachine, updateMachine } from "../../../src/services/machine/machines.ts";
import type { Typed } from "../../support/cli/run-printed.ts";
import { eventually } from "../../support/eventually.ts";
import { faultsAtRest } from "../../support/fleet/at-rest.ts";
import {
  enrolDeployed,
  giveAccount,
  type OnboardingBench,
  type OnboardingOptions,
  openOnboardingBench,
  SITE,
} from "../../support/fleet/onboarding-bench.ts";
import { aKeyPair, openSystemBehindJumpHost } from "../../support/fleet/system-behind-jump-host.ts";
import { NOTHING_ELSE, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import type { MaasHost } from "./maas-site.ts";

/** Onboarding on the simulated MAAS, with the real engine on PostgreSQL. */
let bench: OnboardingBench;
beforeAll(async () => {
  bench = await openOnboardingBench({ hosts: 100 });
});
afterAll(() => bench.close());

const visited = (steps: readonly { readonly name: string; readonly round: number; readonly state: string }[]) =>
  steps.map(({ name, round, state }) => `${name} ${round} ${state}`);

describe("an onboarding", () => {
  test("brings a server that MAAS does not know to active: each command is sent once", async () => {
    const host = bench.nextHost();
    const { nodeId } = await bench.start(host);
    await bench.enrol(nodeId);
    const run = await bench.jobIs(nodeId, "completed", "failed_retryable", "failed_manual_intervention");
    expect(run.error).toBeNull();
    expect(visited(run.steps)).toEqual([
      "load_site_config 1 SUCCEEDED",
      "resolve_power_credentials 1 SUCCEEDED",
      "create_or_find_in_maas 1 SUCCEEDED",
      "commission_node 1 SUCCEEDED",
      "wait_for_ready 1 SUCCEEDED",
      "configure_storage 1 SUCCEEDED",
      "apply_roce_phase2 1 SKIPPED",
      "ensure_pxe_interface_auto 1 SUCCEEDED",
      "render_cloud_init 1 SUCCEEDED",
      "deploy_via_maas 1 SUCCEEDED",
      "wait_for_deployed 1 SUCCEEDED",
      "ensure_hardware_sync_configured 1 SUCCEEDED",
      "wait_for_hardware_sync_healthy 1 SUCCEEDED",
      "wait_for_agent_enrollment 1 SUCCEEDED",
    ]);
    const node = await bench.node(nodeId);
    expect(node.state.name).toBe("active");
    expect(await bench.callsOn(node.facts.systemId ?? "")).toEqual([
      "commission",
      "set_boot_disk",
      "set_storage_layout",
      "deploy",
    ]);
    const [machine] = await bench.deps.db.query("select state from machines where id = $1", [node.machineId]);
    expect(machine).toEqual({ state: "READY" });
  });
});

test("a profile that claims the one New machine of MAAS takes it, with its name and its account", async () => {
  const host = bench.nextHost();
  const { system_id } = await bench.maas.control<{ system_id: string }>("POST", `/maas/hosts/${host.id}/discover`, {});
  const { nodeId } = await bench.start(host, { policy: { auto_claim_single_new_machine: true } });
  await bench.enrol(nodeId);
  await bench.jobIs(nodeId, "completed", "failed_manual_intervention");
  expect((await bench.node(nodeId)).facts.systemId).toBe(system_id);
  expect(await bench.machineOf(host)).toMatchObject({ system_id, hostname: `node-${host.id}` });
  expect((await bench.callsOn(system_id)).slice(0, 2)).toEqual(["PUT", "commission"]);
});

test("a profile with RoCE addresses gives each port its address once", async () => {
  const host = bench.nextHost();
  const links = [{ port: "ens1np0", subnet: "10.41.0.0/24", ipAddress: "10.41.0.17" }];
  await setRoceAssignments(bench.deps, tester, { site: SITE, nodes: [{ hostname: `node-${host.id}`, links }] });
  const { nodeId } = await bench.start(host, { policy: { enable_phase2_roce: true } });
  await bench.enrol(nodeId);
  await bench.jobIs(nodeId, "completed", "failed_manual_intervention");
  const node = await bench.node(nodeId);
  expect(node.state.name).toBe("active");
  const calls = await bench.callsOn(node.facts.systemId ?? "");
  expect(calls.filter((call) => call === "link_subnet")).toHaveLength(1);
});

/** A line that is printed, and what its reader types when it asks. */
type PrintedLine = readonly [line: string, typed?: Typed];

/** What goes wrong with a node, and how people mend that before they run the command that is recommended. */
interface Trigger {
  readonly class: string;
  readonly state: "failed_retryable" | "failed_manual_intervention";
  readonly stage: string;
  readonly action: string;
  /** What Millwright is given before the action, as `fleet show` prints it. */
  readonly first?: (host: MaasHost) => readonly PrintedLine[];
  readonly options?: OnboardingOptions;
  /** Before the onboarding begins; returns what people mend elsewhere. */
  readonly breaks: (host: MaasHost) => Promise<(nodeId: string) => Promise<unknown>>;
  /** While it runs. */
  readonly meanwhile?: (nodeId: string) => Promise<unknown>;
}

const accountOf = (host: MaasHost): Typed => ({
  answers: { "BMC user name:": host.ipmi_username, "BMC password:": host.ipmi_password },
});
/** Nothing that is mended elsewhere. */
const nowhere = () => Promise.resolve();

const MANUAL = "failed_manual_intervention";
const RETRYABLE = "failed_retryable";

const fault =
  (type: string, more = {}) =>
  async (host: MaasHost) => {
    const { id } = await bench.fault(host, type, more);
    return () => bench.unfault(id);
  };
const boundMachine = async (nodeId: string) =>
  bench.deps.maas?.findMachine(bench.target, await boundTo(nodeId), bench.call);
const boundTo = async (nodeId: string) => (await bench.node(nodeId)).facts.systemId ?? "";
const commissionAgain = async (nodeId: string) => {
  const { maas } = bench.deps;
  if (!maas) throw new Error("no MAAS");
  await maas.commission(bench.target, await boundTo(nodeId), bench.call);
};

/** What a person does in MAAS itself. */
async function orderInMaas(systemId: string, op: string): Promise<void> {
  const { url, apiKey } = bench.maas;
  const response = await fetch(`${url}/api/2.0/machines/${systemId}/?op=${op}`, {
    method: "POST",
    headers: { authorization: signedHeader({ apiKey }, new Date()) },
  });
  if (!response.ok) throw new Error(`${op} of ${systemId} was answered with ${response.status}`);
}

const TRIGGERS: Readonly<Record<string, Trigger>> = {
  "conflicting discovery candidates": {
    ...{ class: "conflicting_candidates", state: MANUAL, stage: "create_or_find_in_maas", action: "retry-stage" },
    async breaks(host) {
      const [other] = [bench.nextHost()];
      const hostname = `node-${host.id}`;
      await bench.maas.control("POST", `/maas/hosts/${host.id}/discover`, { hostname });
      const { system_id } = await bench.maas.control<{ system_id: string }>(
        "POST",
        `/maas/hosts/${other.id}/discover`,
        { hostname },
      );
      return () => bench.maas.control("DELETE", `/maas/machines/${system_id}`);
    },
  },
  "a machine of its name that has another serial number": {
    ...{ class: "identity_mismatch", state: MANUAL, stage: "create_or_find_in_maas", action: "retry-stage" },
    options: { serial: "SN-OF-ANOTHER" },
    async breaks(host) {
      const systemId = await commissionedByPeople(host);
      return () => bench.maas.control("DELETE", `/maas/machines/${systemId}`);
    },
  },
  "an image that MAAS does not have": {
    ...{ class: "image_missing", state: MANUAL, stage: "load_site_config", action: "retry-stage" },
    options: { policy: { distro_series: "jammy" } },
    async breaks() {
      const fault = { type: "images_gone" };
      const { id } = await bench.maas.control<{ id: string }>("POST", "/faults", { device: "maas", fault });
      return () => bench.unfault(id);
    },
  },
  "no BOSS disk": {
    ...{ class: "boss_disk_not_found", state: MANUAL, stage: "configure_storage", action: "retry-stage" },
    async breaks(host) {
      await bench.fault(host, "no_boss_disk", { times: 1 });
      return commissionAgain;
    },
  },
  "a boot port that cannot be linked": {
    ...{ class: "pxe_interface_not_fixable", state: MANUAL, stage: "ensure_pxe_interface_auto", action: "retry-stage" },
    options: { linkUp: true },
    breaks: fault("link_refused"),
  },
  "a machine that is deleted in MAAS": {
    ...{ class: "machine_deleted_in_maas", state: MANUAL, stage: "wait_for_ready", action: "restart-clean" },
    breaks: fault("commissioning_stuck", { times: 1 }),
    async meanwhile(nodeId) {
      await bench.until(nodeId, "it is commissioned", (run) => run.steps.at(-1)?.name === "wait_for_ready");
      await bench.maas.control("DELETE", `/maas/machines/${await boundTo(nodeId)}`);
    },
  },
  "a datasource that is not found, as often as the profile allows": {
    ...{
      class: "datasource_failed_repeatedly",
      state: MANUAL,
      stage: "classify_deploy_failure",
      action: "retry-stage",
    },
    options: { policy: { max_deploy_retry_attempts: 1 } },
    breaks: fault("deploy_datasource_fails"),
  },
  "a deployment that fails of something else": {
    ...{ class: "deploy_failed", state: MANUAL, stage: "classify_deploy_failure", action: "retry-stage" },
    breaks: fault("deploy_fails"),
  },
  "hardware that never syncs": {
    ...{
      class: "hardware_sync_unhealthy",
      state: MANUAL,
      stage: "wait_for_hardware_sync_healthy",
      action: "retry-stage",
    },
    options: { deadlines: { wait_for_hardware_sync_healthy: 1 } },
    breaks: fault("hardware_sync_silent"),
  },
  "an agent that does not enrol": {
    ...{ class: "enrollment_timed_out", state: RETRYABLE, stage: "wait_for_agent_enrollment", action: "retry-stage" },
    options: { deadlines: { wait_for_agent_enrollment: 1 } },
    breaks: async () => (nodeId) =>
      bench.deps.db.execute(
        "update runs set plan = jsonb_set(plan, '{steps,15,timeoutSeconds}', '600') where target_id = $1",
        [nodeId],
      ),
  },
  "a commissioning that never ends": {
    ...{ class: "commissioning_stuck", state: RETRYABLE, stage: "wait_for_ready", action: "restart-clean" },
    options: { deadlines: { wait_for_ready: 2 } },
    breaks: fault("commissioning_stuck"),
  },
  "a commissioning that fails": {
    ...{ class: "commissioning_failed", state: RETRYABLE, stage: "wait_for_ready", action: "resume" },
    breaks: fault("commissioning_fails"),
  },
  "hardware whose tests fail": {
    ...{ class: "testing_failed", state: RETRYABLE, stage: "wait_for_ready", action: "resume" },
    breaks: fault("testing_fails"),
  },
  "a deployment that never ends": {
    ...{ class: "deploy_stuck", state: RETRYABLE, stage: "wait_for_deployed", action: "restart-clean" },
    options: { deadlines: { wait_for_deployed: 1 } },
    breaks: fault("deploy_stuck"),
  },
  "a MAAS that deploys without hardware sync": {
    ...{
      class: "hardware_sync_not_enabled",
      state: MANUAL,
      stage: "ensure_hardware_sync_configured",
      action: "restart-clean",
    },
    breaks: fault("hardware_sync_ignored"),
  },
  "a release that fails between two deployments": {
    ...{ class: "release_failed", state: RETRYABLE, stage: "recover_for_datasource_retry", action: "retry-stage" },
    async breaks(host) {
      await bench.fault(host, "deploy_datasource_fails", { times: 1 });
      return fault("release_fails")(host);
    },
  },
  "an API key that MAAS refuses": {
    ...{ class: "credentials_rejected", state: RETRYABLE, stage: "load_site_config", action: "retry-stage" },
    first: () => [
      [`millwright fleet site update ${SITE} --api-key-file -`, { answers: { "API key of MAAS:": bench.maas.apiKey } }],
    ],
    async breaks() {
      const { id } = await bench.maas.control<{ id: string }>("POST", "/faults", {
        device: "maas",
        path: "/MAAS/api/2.0/users/",
        times: 1,
        fault: { type: "status", status: 401, body: "Authorization Error: Invalid API key." },
      });
      return () => bench.unfault(id);
    },
  },
  "a MAAS that answers 503": {
    ...{ class: "maas_unavailable", state: RETRYABLE, stage: "load_site_config", action: "retry-stage" },
    options: { deadlines: { load_site_config: 1 } },
    async breaks() {
      const { id } = await bench.maas.control<{ id: string }>("POST", "/faults", {
        device: "maas",
        fault: { type: "status", status: 503 },
      });
      return () => bench.unfault(id);
    },
  },
  "a site that is disabled": {
    ...{ class: "site_unavailable", state: MANUAL, stage: "load_site_config", action: "retry-stage" },
    first: () => [[`millwright fleet site update ${SITE} --enable`]],
    async breaks() {
      await bench.deps.db.execute("update fleet_sites set is_enabled = false where name = $1", [SITE]);
      return nowhere;
    },
  },
  "a machine that somebody marks as broken": {
    ...{ class: "machine_not_usable", state: MANUAL, stage: "wait_for_ready", action: "retry-stage" },
    async breaks(host) {
      await bench.fault(host, "commissioning_stuck", { times: 1 });
      return async (nodeId) => {
        await orderInMaas(await boundTo(nodeId), "mark_fixed");
        await commissionAgain(nodeId);
      };
    },
    async meanwhile(nodeId) {
      await bench.until(nodeId, "it is commissioned", (run) => run.steps.at(-1)?.name === "wait_for_ready");
      await orderInMaas(await boundTo(nodeId), "mark_broken");
    },
  },
  "a bootstrap bundle that is not on record": {
    ...{ class: "bundle_missing", state: MANUAL, stage: "render_cloud_init", action: "rerun" },
    options: { policy: { site_bootstrap_bundle_ref: "late" } },
    first: () => [["millwright cloud-init create late --file -", { stdin: "#!/bin/sh\ntrue\n" }]],
    breaks: async () => nowhere,
  },
  "a bootstrap bundle that is no user data": {
    ...{ class: "bundle_missing", state: MANUAL, stage: "render_cloud_init", action: "rerun" },
    options: { policy: { site_bootstrap_bundle_ref: "odd" } },
    first: () => [
      ["millwright cloud-init delete odd", { answers: { "Delete cloud-init document odd? Type yes:": "yes" } }],
      ["millwright cloud-init create odd --file -", { stdin: "#cloud-config\n{}\n" }],
    ],
    async breaks() {
      await createCloudInit(bench.deps, tester, { name: "odd", content: "packages: []\n" });
      return nowhere;
    },
  },
  "a management controller without an account": {
    ...{ class: "credentials_missing", state: MANUAL, stage: "resolve_power_credentials", action: "retry-stage" },
    options: { hasAccount: false },
    first: (host) => [[`millwright machine set-credentials m-${host.id}`, accountOf(host)]],
    breaks: async () => nowhere,
  },
  "a site without its API key": {
    ...{ class: "credentials_missing", state: MANUAL, stage: "load_site_config", action: "retry-stage" },
    first: () => [
      [`millwright fleet site update ${SITE} --api-key-file -`, { answers: { "API key of MAAS:": bench.maas.apiKey } }],
    ],
    async breaks() {
      await bench.deps.db.execute("delete from secrets where name = $1", [`fleet-site/${SITE}`]);
      return nowhere;
    },
  },
  "RoCE addresses that nobody has assigned": {
    ...{ class: "roce_assignment_missing", state: MANUAL, stage: "apply_roce_phase2", action: "retry-stage" },
    options: { policy: { enable_phase2_roce: true } },
    first: (host) => [roceImport(host, "ens1np0", "10.41.0.18")],
    breaks: async () => nowhere,
  },
  "a RoCE address of a port that the machine lacks": {
    ...{ class: "roce_assignment_missing", state: MANUAL, stage: "apply_roce_phase2", action: "retry-stage" },
    options: { policy: { enable_phase2_roce: true } },
    first: (host) => [roceImport(host, "ens1np0", "10.41.0.19")],
    async breaks(host) {
      const links = [{ port: "ens9np9", subnet: "10.41.0.0/24", ipAddress: "10.41.0.19" }];
      await setRoceAssignments(bench.deps, tester, { site: SITE, nodes: [{ hostname: `node-${host.id}`, links }] });
      return nowhere;
    },
  },
};

const roceImport = (host: MaasHost, port: string, address: string): PrintedLine => [
  `millwright fleet roce import --site ${SITE} --file -`,
  { stdin: `hostname,port,subnet,ip_address\nnode-${host.id},${port},10.41.0.0/24,${address}\n` },
];

/** Provoked by tests of their own. */
const ELSEWHERE = ["ssh_seed_failed", "drift_not_adoptable"];

test("every class that a stage of an onboarding may fail with is provoked here", () => {
  const declared = new Set<string>(Object.values(ONBOARDING_STAGES).flatMap(({ failures }) => failures));
  const provoked = new Set([...Object.values(TRIGGERS).map(({ class: name }) => name), ...ELSEWHERE]);
  expect([...declared].filter((name) => !provoked.has(name))).toEqual([]);
});

describe("an onboarding that meets with", () => {
  test.each(Object.entries(TRIGGERS))(
    "%s fails with its class, and the printed commands lead out as they are",
    async (_, trigger) => {
      const host = bench.nextHost(trigger.options?.linkUp === true ? "link_up" : "auto");
      const mend = await trigger.breaks(host);
      const { nodeId } = await bench.start(host, trigger.options ?? {});
      await trigger.meanwhile?.(nodeId);
      const failure = await bench.failure(nodeId);
      const { class: name, state, stage, action, first = () => [] } = trigger;
      const lines: readonly PrintedLine[] = [...first(host), [`millwright fleet action ${nodeId} ${action}`]];
      expect(failure).toEqual({ ...{ class: name, state, stage, command: lines[0]?.[0] } });
      expect((await bench.node(nodeId)).state.name).toBe(state === MANUAL ? "quarantined" : "enrolling");
      await mend(nodeId);
      for (const [line, typed] of lines) {
        expect(await bench.printed(nodeId)).toBe(line);
        await bench.runPrinted(line, typed);
      }
      await bench.enrol(nodeId);
      await bench.jobIs(nodeId, "completed", MANUAL);
      expect((await bench.node(nodeId)).state.name).toBe("active");
    },
  );
});

test("a password is sent to no other address than the one that it was given for", async () => {
  const [host, other] = [bench.nextHost(), bench.nextHost()];
  const { nodeId } = await bench.start(host, { hasAccount: false });
  await bench.failure(nodeId);
  const machineId = `m-${host.id}`;
  const moveBmc = async (to: MaasHost) => {
    const { spec, labels } = await getMachine(bench.deps, machineId);
    const given = { ...NOTHING_ELSE, macAddresses: [], serial: "", sshEndpoint: "", sshHostKey: "", jumpHosts: [] };
    const at = { provider: spec.provider, bmcEndpoint: to.ipmi_address, bmcProtocol: "ipmi" };
    await updateMachine(bench.deps, tester, { id: machineId, labels, spec: { ...given, ...at } });
    await giveAccount(bench.deps, machineId, to);
  };
  await moveBmc(other);
  await bench.act(nodeId, "rerun");
  const back = `millwright machine update ${machineId} --bmc-endpoint ${host.ipmi_address}`;
  expect(await bench.failure(nodeId)).toEqual({
    ...{ class: "credentials_missing", state: MANUAL, stage: "resolve_power_credentials", command: back },
  });
  expect((await bench.latest(nodeId)).error?.message).toContain(
    `next: millwright machine update ${machineId} --bmc-endpoint ${host.ipmi_address}`,
  );
  expect(await bench.machineOf(host)).toBeUndefined();
  await bench.runPrinted(back);
  // What was given for the other address is no account of this one.
  const account = `millwright machine set-credentials ${machineId}`;
  expect(await bench.printed(nodeId)).toBe(account);
  await bench.act(nodeId, "retry-stage");
  expect(await bench.failure(nodeId)).toMatchObject({ class: "credentials_missing", state: MANUAL, command: account });
  await bench.runPrinted(account, accountOf(host));
  const retry = `millwright fleet action ${nodeId} retry-stage`;
  expect(await bench.printed(nodeId)).toBe(retry);
  await bench.runPrinted(retry);
  await bench.enrol(nodeId);
  await bench.jobIs(nodeId, "completed", MANUAL);
});

test("an onboarding whose agent cannot be installed over SSH either calls a person, after the second try, and goes on once there is a way", async () => {
  const policy = { ssh_username: "ubuntu", enrollment_token_ttl_seconds: 1 };
  const host = bench.nextHost();
  const { nodeId } = await bench.start(host, { policy });
  const failed = { class: "ssh_seed_failed", state: MANUAL, stage: "wait_for_agent_enrollment" };
  const command = `millwright fleet action ${nodeId} retry-stage`;
  expect(await bench.failure(nodeId)).toEqual({ ...failed, command });
  expect((await bench.node(nodeId)).state.name).toBe("quarantined");

  const system = await openSystemBehindJumpHost((script) =>
    enrolDeployed(bench.deps, nodeId, Buffer.from(script).toString("base64")),
  );
  onTestFinished(() => system.close());
  const machineId = `m-${host.id}`;
  const account = { bmcUsername: "", bmcPassword: "", sshUsername: "ops", sshPrivateKey: aKeyPair().private };
  const reachedBy = async (sshHostKey: string) => {
    const { spec, labels } = await getMachine(bench.deps, machineId);
    const given = { ...NOTHING_ELSE, macAddresses: [], serial: "", provider: spec.provider };
    const bmc = { bmcEndpoint: host.ipmi_address, bmcProtocol: "ipmi" };
    const ssh = { sshEndpoint: "10.40.0.250:2222", sshHostKey, jumpHosts: [{ ...system.jump, username: "jump" }] };
    await updateMachine(bench.deps, tester, { id: machineId, labels, spec: { ...given, ...bmc, ...ssh } });
    // After the address: an account is for the address that is on record when it is given.
    await setMachineCredentials(bench.deps, tester, { machineId, ...account });
  };
  // From here on a token lasts: who mends the way does not wait for its end.
  const ttl = "{steps,15,payload,policy,enrollment_token_ttl_seconds}";
  const text = "update runs set plan = jsonb_set(plan, $2::text[], '600', false) where target_id = $1";
  await bench.deps.db.execute(text, [nodeId, ttl]);
  await reachedBy(aKeyPair().public);
  await bench.runPrinted(command);
  expect(await bench.failure(nodeId)).toEqual({ ...failed, command });
  expect((await bench.latest(nodeId)).error?.message).toContain("shows host key");
  await reachedBy(system.hostKey);
  await bench.runPrinted(command);
  await bench.jobIs(nodeId, "completed", MANUAL);
  expect((await bench.node(nodeId)).state.name).toBe("active");
  const [address] = (await boundMachine(nodeId))?.ipAddresses ?? [];
  expect(new Set(system.ways)).toEqual(new Set([`jump to ${address}:2222`]));
});

const stuck = async (more: OnboardingOptions = {}) => {
  const host = bench.nextHost();
  const { id } = await bench.fault(host, "commissioning_stuck", { times: 1 });
  const { nodeId, runId } = await bench.start(host, more);
  await bench.until(nodeId, "it is commissioned", (run) => run.steps.at(-1)?.name === "wait_for_ready");
  return { host, nodeId, runId, systemId: await boundTo(nodeId), faultId: id };
};
const completed = async (nodeId: string) => {
  await bench.enrol(nodeId);
  await bench.jobIs(nodeId, "completed", MANUAL);
  return (await bench.node(nodeId)).state.name;
};

describe("an operator who", () => {
  test("cancels a running job has all of it undone: the machine that it made is gone, and the node is quarantined", async () => {
    const { host, nodeId, systemId } = await stuck();
    await bench.act(nodeId, "cancel");
    await bench.jobIs(nodeId, "cancelled");
    expect(await bench.callsOn(systemId)).toEqual(["commission", "abort", "DELETE"]);
    const node = await bench.node(nodeId);
    expect([node.state.name, node.facts.systemId]).toEqual(["quarantined", null]);
    expect(await bench.machineOf(host)).toBeUndefined();

    await bench.act(nodeId, "rerun");
    expect(await completed(nodeId)).toBe("active");
    await expect(bench.act(nodeId, "retry-stage")).rejects.toThrow(/completed/);
  });

  test("cancels a failed job has what it did undone as well", async () => {
    const { nodeId, systemId } = await stuck({ deadlines: { wait_for_ready: 1 } });
    await bench.jobIs(nodeId, RETRYABLE);
    await bench.act(nodeId, "cancel");
    await bench.jobIs(nodeId, "cancelled");
    expect(await bench.callsOn(systemId)).toEqual(["commission", "abort", "DELETE"]);
  });

  test("cancels a job whose site is disabled by now has it undone all the same", async () => {
    const { host, nodeId, systemId } = await stuck();
    const enable = (is: boolean) =>
      bench.deps.db.execute("update fleet_sites set is_enabled = $2 where name = $1", [SITE, is]);
    await enable(false);
    await bench.act(nodeId, "cancel");
    await bench.jobIs(nodeId, "cancelled");
    expect(await bench.callsOn(systemId)).toEqual(["commission", "abort", "DELETE"]);
    expect((await bench.latest(nodeId)).residue).toEqual([]);
    expect(await bench.machineOf(host)).toBeUndefined();
    await enable(true);
  });

  test("marks a job as manual stops it after its stage, and resumes it from its last safe stage", async () => {
    const { nodeId, systemId } = await stuck();
    await bench.act(nodeId, "mark-manual");
    const { maas } = bench.deps;
    await maas?.abort(bench.target, systemId, "by hand", bench.call);
    await maas?.commission(bench.target, systemId, bench.call);
    await bench.jobIs(nodeId, MANUAL);
    expect(jobViewOf(await bench.latest(nodeId))?.message).toContain("marked by tester: seen to");
    await bench.act(nodeId, "resume");
    expect(await completed(nodeId)).toBe("active");
    expect(jobViewOf(await bench.latest(nodeId))?.stage).toBe("wait_for_agent_enrollment");
  });

  test("resumes a job that lives changes nothing", async () => {
    const { nodeId, runId } = await stuck();
    await bench.act(nodeId, "resume");
    expect((await bench.latest(nodeId)).id).toBe(runId);
    await bench.act(nodeId, "cancel");
    await bench.jobIs(nodeId, "cancelled");
  });

  test("adopts what has come about since ends the job as reconciled", async () => {
    const host = bench.nextHost();
    const { id } = await bench.fault(host, "hardware_sync_silent");
    const { nodeId } = await bench.start(host, { deadlines: { wait_for_hardware_sync_healthy: 1 } });
    await bench.jobIs(nodeId, MANUAL);
    await bench.unfault(id);
    await bench.act(nodeId, "adopt-observed-state");
    await bench.enrol(nodeId);
    await bench.jobIs(nodeId, "reconciled", MANUAL, RETRYABLE);
    expect((await bench.node(nodeId)).state.name).toBe("active");
  });

  test.each(["rerun", "adopt-observed-state"] as const)(
    "has a machine that people deployed themselves needs %s: nothing is deployed over it before",
    async (action) => {
      const host = bench.nextHost();
      const systemId = await deployedByPeople(host);
      const { nodeId } = await bench.start(host);
      const rerun = `millwright fleet action ${nodeId} rerun`;
      expect(await bench.failure(nodeId)).toEqual({
        ...{ class: "drift_not_adoptable", state: MANUAL, stage: "deploy_via_maas", command: rerun },
      });
      // The first of the two is what is printed.
      await bench.runPrinted(rerun.replace("rerun", action));
      await bench.until(
        nodeId,
        "it waits for its agent",
        (run) => run.steps.at(-1)?.name === "wait_for_agent_enrollment",
      );
      expect((await bench.callsOn(systemId)).filter((call) => call === "deploy" || call === "release")).toEqual([
        "deploy",
      ]);
    },
  );
});

/** One listing of the site's machines, by the reconciler. */
async function listMachinesOnce(): Promise<void> {
  const { db, maas, stores } = bench.deps;
  if (!maas) throw new Error("there is no MAAS");
  const due =
    "insert into fleet_site_watches (site) values ($1) on conflict (site) do update set due_at = now(), lease_owner = null";
  await db.execute(due, [SITE]);
  const stop = new AbortController();
  const listed = Promise.withResolvers<void>();
  const reconciler = new SiteReconciler({
    ...{ db, stores, log: silentLog, interval: minutes(30) },
    siteOf: async () => ({ maas, target: bench.target, retainsMachines: false }),
    // Two replicas that have found the same.
    adopt: async (node, run) => {
      await Promise.all([adoptLedOn(bench.deps, node, run), adoptLedOn(bench.deps, node, run)]);
    },
    observer: { listed: () => listed.resolve() },
  });
  const running = reconciler.run(stop.signal);
  await listed.promise;
  stop.abort();
  await running;
}

test("a job that failed goes on by itself once people have led its machine on in MAAS, and not for what it has left there itself", async () => {
  const host = bench.nextHost();
  await bench.fault(host, "commissioning_fails", { times: 1 });
  const { nodeId, runId } = await bench.start(host);
  await bench.jobIs(nodeId, RETRYABLE);
  for (let time = 0; time < 2; time += 1) {
    await listMachinesOnce();
    expect((await bench.latest(nodeId)).id).toBe(runId);
  }
  await commissionAgain(nodeId);
  await untilStatus(await boundTo(nodeId), 4);
  await listMachinesOnce();
  const adopted = await bench.latest(nodeId);
  expect(adopted).toMatchObject({ previousRunId: runId, action: "adopt", attempt: 2, initiator: "fleet reconciler" });
  await bench.enrol(nodeId);
  await bench.jobIs(nodeId, "reconciled", MANUAL, RETRYABLE);
  expect((await bench.node(nodeId)).state.name).toBe("active");
  expect((await bench.callsOn(await boundTo(nodeId))).filter((call) => call === "commission")).toHaveLength(2);
});

async function commissionedByPeople(host: MaasHost): Promise<string> {
  const { maas } = bench.deps;
  if (!maas) throw new Error("there is no MAAS");
  const { target } = bench;
  const power = { address: host.ipmi_address, username: host.ipmi_username, password: host.ipmi_password };
  const { systemId } = await maas.createMachine(target, { hostname: `node-${host.id}`, power }, bench.call);
  await maas.commission(target, systemId, bench.call);
  await untilStatus(systemId, 4);
  return systemId;
}

const untilStatus = (systemId: string, status: number) =>
  eventually(async () => (await bench.deps.maas?.findMachine(bench.target, systemId, bench.call))?.status === status, {
    what: `${systemId} has status ${status}`,
    within: 10_000,
  });

async function deployedByPeople(host: MaasHost): Promise<string> {
  const { maas } = bench.deps;
  if (!maas) throw new Error("there is no MAAS");
  const { target } = bench;
  const systemId = await commissionedByPeople(host);
  const boss = (await maas.findMachine(target, systemId, bench.call))?.disks.find(
    ({ model }) => model === "DELLBOSS VD",
  );
  await maas.setFlatLayout(target, systemId, boss?.id ?? 0, bench.call);
  const order = { userData: "#!/bin/sh\n", distroSeries: null, hardwareSync: true, comment: "by hand" };
  await maas.deploy(target, systemId, order, bench.call);
  await untilStatus(systemId, 6);
  return systemId;
}

// The last of all: it goes over what every test before it has left in the journal.
test("after every commit, nodes, jobs, machines and installs went together as the tables say", async () => {
  expect(await faultsAtRest(bench.deps.db)).toEqual([]);
});
