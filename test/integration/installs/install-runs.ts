import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  MachineStatus_Phase,
  type Run,
  Run_Phase,
  StepStatus_State,
} from "../../../contract/baremetal/v1/baremetal_pb.js";
import { createFiles } from "../../../src/api/rest/files.ts";
import { createRestApi } from "../../../src/api/rest/rest-api.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import { createImage } from "../../../src/services/catalog/images.ts";
import { createWorkflow } from "../../../src/services/install/workflows.ts";
import { createPlan } from "../../../src/services/run/plans.ts";
import { loadInstalls } from "../../../src/store/install/installs.ts";
import { openReportDesk } from "../../../src/wiring/installs.ts";
import { restRoutes } from "../../../src/wiring/routes.ts";
import { access } from "../../../src/wiring/things/all-things.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench, tester } from "../../support/run-bench.ts";
import { startApi } from "../api/api-under-test.ts";
import type { Answer, InstallsUnderTest, Node, Page, Transition } from "./installs-under-test.ts";
import { ScriptedMachine } from "./scripted-machine.ts";

export const WORKFLOW = "ubuntu-2404";
export const OTHER_WORKFLOW = "debian-13";
/** The image that `WORKFLOW` installs, and the plan that does so. */
export const IMAGE = "ubuntu:24.04-net";
export const PLAN = "plan-install-over-network";
/** Holds a machine that is in no cluster. */
export const WAITING_PLAN = "plan-wait-for-cluster";
const DIGEST = `sha256:${createHash("sha256").update("image").digest("hex")}`;

/** The simulated rack with runs, and beside it the server's own boot path over HTTP. */
export interface InstallRunBench extends RunBench {
  readonly httpUrl: string;
  readonly call: InstallsUnderTest["call"];
  /** The firmware of a simulated machine, as the boot path sees it. */
  firmwareOf(machineId: string): ScriptedMachine;
  /** Machine phase, phase of the run, state of its last step, state of the install: all of one moment that is not passing. */
  pairs(machineId: string, runId: string): Promise<Pairs>;
  installOf(machineId: string): Promise<Node>;
  history(machineId: string): Promise<readonly Transition[]>;
  start(machineId: string, planId?: string): Promise<string>;
  /** Waits until the run has placed its order. */
  ordered(runId: string, machineId: string): Promise<void>;
  messageOf(runId: string): Promise<string>;
}

export interface Pairs {
  readonly machine: string;
  readonly run: string;
  readonly step: string;
  readonly install: string;
}

const boot = {
  method: "image",
  kernel_url: "/files/vmlinuz",
  initrd_url: "/files/initrd",
  cmdline: "",
  image_url: "/files/image",
  image_digest: DIGEST,
  target_device: "",
} as const;
const workflow = {
  description: "",
  osFamily: "linux",
  architecture: "x86_64",
  bootMode: "any",
  steps: [],
  nextState: "installed",
} as const;

export async function startInstallRuns(options: { readonly site?: string } = {}): Promise<InstallRunBench> {
  const bench = await startRunBench({ site: options.site ?? "racks=1" });
  const { deps } = bench;
  const directory = mkdtempSync(join(tmpdir(), "millwright-files-"));
  for (const name of ["vmlinuz", "initrd", "image"]) writeFileSync(join(directory, name), name);
  const reportUnexpected = (cause: unknown): never => {
    throw cause;
  };
  const api = await startApi({
    http: async (app) => {
      await app.register(
        createRestApi({
          version: "1.2.3",
          access,
          routes: restRoutes({
            services: { ...deps, canErase: true },
            installTimeout: hours(1),
            boot: { autoRegister: true, defaultGroupId: null, eraser: null },
            publicUrl: null,
            reports: openReportDesk(deps, { requireTokens: false }),
          }),
          authenticate: async () => tester,
          guardThings: async () => {},
          reportUnexpected,
        }),
      );
      await app.register(createFiles({ directory, reportUnexpected }));
    },
  });
  await createWorkflow(deps, tester, { ...workflow, id: WORKFLOW, name: "Ubuntu 24.04", boot });
  await createWorkflow(deps, tester, { ...workflow, id: OTHER_WORKFLOW, name: "Debian 13", boot });
  const image = { name: IMAGE, kind: "netboot", location: WORKFLOW, digest: DIGEST, successProof: "token" };
  await createImage(deps, tester, image);
  const install = {
    kind: "repave",
    name: "install",
    timeoutSeconds: 120,
    maxRetries: 1,
    payload: { image_ref: IMAGE },
  };
  const arm = { kind: "netboot", name: "arm", timeoutSeconds: 60, maxRetries: 2, payload: { mode: "PXE" } };
  await createPlan(deps, tester, { planId: PLAN, displayName: "", steps: [arm, install] });
  const wait = { kind: "verify", name: "wait", timeoutSeconds: 120, maxRetries: 0, payload: {} };
  await createPlan(deps, tester, { planId: WAITING_PLAN, displayName: "", steps: [wait] });

  const call = async <T>(method: string, path: string, body?: unknown): Promise<Answer<T>> => {
    const answer = await fetch(`${api.httpUrl}${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.includes("json") === true;
    return { status: answer.status, headers: answer.headers, text, body: (isJson ? JSON.parse(text) : text) as T };
  };
  const recordOf = async (id: string) => (await loadInstalls(deps.db, [id])).things[0];
  const lastStep = (run: Run) => run.steps.at(-1);
  // One a machine: it counts its boots, and each report of a boot is sent once.
  const firmware = new Map<string, ScriptedMachine>();
  const firmwareOf = (machineId: string): ScriptedMachine => {
    const [mac = ""] = bench.simulated.find(({ machine_id }) => machine_id === machineId)?.mac_addresses ?? [];
    const known = firmware.get(machineId) ?? new ScriptedMachine({ call }, mac);
    firmware.set(machineId, known);
    return known;
  };
  const pairs = async (machineId: string, runId: string): Promise<Pairs> => {
    const run = await bench.runs.getRun({ runId });
    const { status } = await bench.machines.getMachine({ machineId });
    const step = lastStep(run);
    return {
      machine: MachineStatus_Phase[status?.phase ?? 0] ?? "",
      run: Run_Phase[run.phase] ?? "",
      step: step === undefined ? "" : `${step.name} ${StepStatus_State[step.state]}`,
      install: (await recordOf(machineId))?.state.name ?? "none",
    };
  };
  let requests = 0;
  return {
    ...bench,
    httpUrl: api.httpUrl,
    call,
    firmwareOf,
    pairs,
    installOf: async (id) => (await call<{ data: Node }>("GET", `/api/v1/nodes/${id}`)).body.data,
    history: async (id) => (await call<Page<Transition>>("GET", `/api/v1/nodes/${id}/history`)).body.data,
    async start(machineId, planId = PLAN) {
      requests += 1;
      return (await bench.runs.startRun({ requestId: `r-${requests}`, machineId, planId })).runId;
    },
    async ordered(runId, machineId) {
      const isOrdered = async () => {
        const install = await recordOf(machineId);
        return install?.facts.orderedBy === runId && install.state.name === "pending";
      };
      await eventually(isOrdered, {
        what: `${runId} has ordered an installation of ${machineId}`,
        seen: async () =>
          JSON.stringify(await pairs(machineId, runId)) + (await lastStep(await bench.runs.getRun({ runId })))?.message,
      });
    },
    messageOf: async (runId) => lastStep(await bench.runs.getRun({ runId }))?.message ?? "",
    async close() {
      await api.close();
      await bench.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
