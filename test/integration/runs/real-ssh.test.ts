import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Run, Run_Phase, type Step } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { type Simulator, startSimulator } from "../../../simulator/simulator.ts";
import { type AnyStep, type ProbeAnswer, readProbe } from "../../../src/runs/model/step.ts";
import { allSteps } from "../../../src/runs/steps/index.ts";
import { Runbooks } from "../../../src/runs/steps/scripts/runbooks.ts";
import { createCluster } from "../../../src/services/catalog/clusters.ts";
import { explain } from "../../../src/services/explain/explain.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { allThings, explainersOf } from "../../../src/wiring/things/all-things.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { accept, hasSshd, type RealSshServer, startSshd } from "../../support/counterparts/openssh-server.ts";
import { eventually } from "../../support/eventually.ts";
import { ROOT } from "../../support/processes/process-bench.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const SAY = `#!/bin/sh\nset -eu\nprintf "%s|%s\\n" "$GREETING" "\${SSH_CONNECTION:-}"\nexit "\${CODE:-0}"\n`;
/** Writes in pieces, the first of which ends within a character, and none of which ends a line. */
const PIECES = `printf 'Progress: 10%% caf\\303'; printf 'drain' >&2
while [ ! -e "$GO" ]; do sleep 0.05; done
printf '\\251 20%%'; printf ' it first' >&2
exit 1
`;
const AWKWARD = `it's "quoted"; $(touch ${tmpdir()}/never) && exit 9`;

describe.skipIf(!hasSshd)(needing("runs over the OpenSSH server", hasSshd ? "" : "openssh-server"), () => {
  let directory: string;
  /** Kinds of steps that are held just before their proof. */
  const held = new Set<string>();
  const HELD_BACK = "held back just before its proof";
  const stepsHeldBack = new Map<string, AnyStep>(
    [...allSteps].map(([kind, step]) => [kind, { ...step, probe: (context) => probeHeldBack(step, context) }]),
  );
  async function probeHeldBack(step: AnyStep, context: Parameters<AnyStep["probe"]>[0]): Promise<ProbeAnswer> {
    const report = readProbe(await step.probe(context));
    return held.has(step.kind) && report.state === "done" ? { state: "in_progress", message: HELD_BACK } : report;
  }
  let simulator: Simulator;
  let surface: RunSurface;
  let host: RealSshServer;
  let jump: RealSshServer;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "millwright-real-ssh-"));
    // kubeadm of this host: on the path of those who sign in, and nowhere else.
    const program = join(ROOT, "test", "support", "counterparts", "kubeadm-stand-in.ts");
    const kubeadm = `#!/bin/sh\nexec ${process.execPath} --disable-warning=ExperimentalWarning ${program} "$@"\n`;
    writeFileSync(join(directory, "kubeadm"), kubeadm, { mode: 0o755 });
    const netplan = `#!/bin/sh\ncat ${directory}/90-millwright.yaml >> ${directory}/applied\n`;
    writeFileSync(join(directory, "netplan"), netplan, { mode: 0o755 });
    writeFileSync(join(directory, "90-millwright.yaml"), "old\n");
    const settings = `SetEnv PATH=${directory}:/usr/bin:/bin NETPLAN_DIRECTORY=${directory}\n`;
    host = await startSshd(`ListenAddress 127.0.0.2\n${settings}`);
    jump = await startSshd("PermitOpen 127.0.0.1:*\n");
    await accept(host.target, [jump]);
    simulator = await startSimulator({ dataDir: join(directory, "site"), seed: 7, speed: 100, site: "racks=1" });
    surface = await startRunSurface({
      controller: true,
      runbooks: new Runbooks({ "say.sh": SAY, "pieces.sh": PIECES }),
      steps: stepsHeldBack,
    });
    const answer = await fetch(new URL("/clusters", simulator.controlUrl));
    const [cluster] = (await answer.json()) as { name: string; api_url: string; kubeconfig: string }[];
    if (!cluster) throw new Error("the simulator has no cluster");
    const { name, api_url: apiUrl, kubeconfig } = cluster;
    await createCluster(surface.deps, tester, { name, apiUrl, kubeconfig });
  }, 60_000);

  afterAll(async () => {
    const rows = await surface.db.query<{ facts: { steps?: { evidence?: { mark?: string } }[] } }>(
      "select facts from runs",
    );
    for (const mark of rows.flatMap(({ facts }) => (facts.steps ?? []).map(({ evidence }) => evidence?.mark)))
      if (mark !== undefined) await rm(`/var/tmp/millwright-${mark}`, { recursive: true, force: true });
    await surface.close();
    await simulator.close();
    await host.stop();
    await jump.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  interface Through {
    readonly hostKey?: string;
    readonly jumpKey?: string;
  }

  /** The same host under another name for each test: only one run at a time works on a machine. */
  async function machine(machineId: string, { hostKey, jumpKey }: Through = {}): Promise<string> {
    const { address, port, username, credentials } = host.target;
    if (!("privateKey" in credentials)) throw new Error("only keys are accepted");
    const jumpHosts =
      jumpKey === undefined
        ? []
        : [{ endpoint: `${jump.target.address}:${jump.target.port}`, hostKey: jumpKey, username }];
    await surface.machines.registerMachine({
      machine: {
        machineId,
        spec: { sshEndpoint: `${address}:${port}`, sshHostKey: hostKey ?? host.target.hostKey ?? "", jumpHosts },
      },
    });
    await setMachineCredentials(surface.deps, tester, {
      machineId,
      bmcUsername: "",
      bmcPassword: "",
      sshUsername: username,
      sshPrivateKey: credentials.privateKey,
    });
    return machineId;
  }

  type PlannedStep = { name: string; maxRetries?: number; kind: Step["kind"] | object };
  async function begin(machineId: string, steps: readonly PlannedStep[]): Promise<string> {
    const planId = `plan-of-${machineId}`;
    await surface.plans.createPlan({ plan: { planId, steps: steps as Step[] } });
    const { runId } = await surface.runs.startRun({ requestId: "r", machineId, planId });
    return runId;
  }
  const saidOf = async (runId: string) =>
    (await surface.logs(runId)).map(({ data }) => Buffer.from(data).toString()).join("");
  async function carryOut(machineId: string, steps: readonly PlannedStep[]): Promise<{ run: Run; said: string }> {
    const runId = await begin(machineId, steps);
    const run = await surface.ended(runId);
    return { run, said: await saidOf(runId) };
  }

  const say = (args: Record<string, string>): PlannedStep => ({
    name: "say",
    kind: { case: "ssh", value: { scriptRef: "say.sh", args } },
  });
  const join_: PlannedStep = { name: "join", kind: { case: "join", value: { clusterRef: "default-cluster" } } };
  const verify: PlannedStep = { name: "verify", kind: { case: "verify", value: { clusterRef: "default-cluster" } } };
  const nodes = async (): Promise<{ readonly metadata: { readonly name: string } }[]> => {
    const answer = await fetch(new URL("/clusters", simulator.controlUrl));
    const [cluster] = (await answer.json()) as { api_url: string; token: string }[];
    const list = await fetch(`${cluster?.api_url}/api/v1/nodes`, {
      headers: { authorization: `Bearer ${cluster?.token}` },
    });
    return ((await list.json()) as { items: { metadata: { name: string } }[] }).items;
  };

  test("a script runs once, with its args as values, and what it writes is in the log", async () => {
    const { run, said } = await carryOut(await machine("m-script"), [say({ GREETING: AWKWARD })]);
    expect(run.phase, said).toBe(Run_Phase.SUCCEEDED);
    expect(said.split(`${AWKWARD}|127.0.0.1 `)).toHaveLength(2);
  });

  test("a script that fails fails the run with its exit code", async () => {
    const { run } = await carryOut(await machine("m-failing"), [say({ GREETING: "x", CODE: "7" })]);
    expect(run).toMatchObject({ phase: Run_Phase.FAILED, error: { message: expect.stringContaining("exit code 7") } });
  });

  test("through a jump host with a key of its own, a script runs and the host joins: its node is known by what it is", async () => {
    const id = await machine("m-jump", { jumpKey: jump.target.hostKey ?? "" });
    const { run, said } = await carryOut(id, [say({ GREETING: "by the jump host" }), join_, verify]);
    expect(run.phase, `${run.error?.message}\n${said}`).toBe(Run_Phase.SUCCEEDED);
    expect(said).toContain("by the jump host|");
    expect(said).toContain("This node has joined the cluster");
    expect(run.steps.find(({ name }) => name === "verify")?.message).toMatch(/matched by (system_uuid|address)/);
    expect(await nodes()).toHaveLength(1);
    expect(said).not.toMatch(/[a-z0-9]{6}\.[a-z0-9]{16}/); // the token
  });

  test("what a script writes in pieces is logged byte for byte, and a line of ours does not go on with it", async () => {
    const machineId = await machine("m-pieces");
    const go = join(directory, "go");
    const kind = { case: "ssh", value: { scriptRef: "pieces.sh", args: { GO: go } } } as const;
    const runId = await begin(machineId, [{ name: "say", kind }]);
    await eventually(async () => (await saidOf(runId)).includes("Progress: 10% caf"), {
      what: "the first piece is logged",
    });
    writeFileSync(go, "");
    expect(await surface.ended(runId)).toMatchObject({ phase: Run_Phase.FAILED });
    const chunks = await surface.logs(runId);
    expect(chunks.filter(({ data }) => Buffer.from(data).toString().includes("\u{fffd}"))).toEqual([]);
    const on = (name: string) =>
      chunks.flatMap(({ stream, data }) => (stream === name ? [Buffer.from(data).toString()] : [])).join("");
    expect(on("stdout")).toContain("Progress: 10% café 20%");
    expect(on("stderr")).toMatch(/^drain it first\nstep say failed: pieces.sh ended with exit code 1\n/);
    const { lastFailure } = await explain(
      { ...surface.deps, explainers: explainersOf(allThings) },
      { kind: "run", id: runId },
    );
    expect(lastFailure?.message).toMatch(/exit code 1; it said: drain it first$/);
  });

  describe("a network change", () => {
    const net = (netplan: string, address: string): PlannedStep => ({
      name: "net",
      kind: { case: "net", value: { params: { netplan, ssh_address: address, rollback_seconds: "100" } } },
    });
    const isApplied = (what: string) =>
      eventually(async () => (await readFile(join(directory, "applied"), "utf8")).endsWith(`${what}\n`), {
        what: `${what} is applied`,
      });
    const inForce = () => readFile(join(directory, "90-millwright.yaml"), "utf8");

    test("that was canceled is undone, and never undoes the one after it", async () => {
      const first = await begin(await machine("m-net-canceled"), [net("one", "127.0.0.77")]);
      await isApplied("one");
      await surface.runs.cancelRun({ runId: first });
      expect(await surface.ended(first)).toMatchObject({ phase: Run_Phase.CANCELED, residue: [] });
      expect(await inForce()).toBe("old\n");
      const { run } = await carryOut(await machine("m-net-after"), [net("two", "127.0.0.1")]);
      expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
      expect(await inForce()).toBe("two\n");
      expect(await readFile(join(directory, "applied"), "utf8")).toMatch(/one\nold\ntwo\n$/);
    });

    test("that is canceled between being confirmed and being proven stays, says so, and the machine is found where it is", async () => {
      const machineId = await machine("m-net-late");
      held.add("net");
      const runId = await begin(machineId, [net("three", "127.0.0.2")]);
      await eventually(async () => (await surface.runs.getRun({ runId })).steps[0]?.message === HELD_BACK, {
        what: "the change is confirmed",
      });
      await surface.runs.cancelRun({ runId });
      const run = await surface.ended(runId);
      held.clear();
      expect(run).toMatchObject({ phase: Run_Phase.CANCELED });
      expect(run.residue).toEqual([expect.stringMatching(/^net: the network change was confirmed .* and is in force/)]);
      expect((await surface.machines.getMachine({ machineId })).status?.sshMovedTo).toBe("127.0.0.2");
      expect(await inForce()).toBe("three\n");
    });
  });

  test.each([
    ["the jump host", "m-wrong-jump", () => ({ jumpKey: host.target.hostKey ?? "" }), () => jump.target.port],
    ["the host", "m-wrong-host", () => ({ hostKey: jump.target.hostKey ?? "" }), () => host.target.port],
  ])(
    "another key of %s than the pinned one calls for somebody, names who showed it, and runs nothing",
    async (_, id, how, port) => {
      const { run, said } = await carryOut(await machine(id, how()), [
        { ...say({ GREETING: "secret words" }), maxRetries: 3 },
      ]);
      expect(run.phase).toBe(Run_Phase.FAILED);
      expect(run.error?.message).toMatch(new RegExp(`127\\.0\\.0\\.1:${port()}.*key`));
      expect(run.steps[0]?.retryCount).toBe(1);
      expect(said).not.toContain("secret words");
      const { status } = await surface.machines.getMachine({ machineId: id });
      expect(status?.conditions.find(({ type }) => type === "NeedsIntervention")).toMatchObject({ status: true });
    },
  );
});
