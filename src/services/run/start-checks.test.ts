import { describe, expect, test } from "vitest";
import { final } from "../../../test/support/failures.ts";
import { aBmc, aMachine, anImage, anSsh, benchOf, exited, type Fakes } from "../../../test/support/runs/step-bench.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { type Plan, validatePlan } from "../../runs/model/plan/plan.ts";
import type { AnyStep } from "../../runs/model/step.ts";
import type { Endpoint, Image } from "../../runs/model/targets.ts";
import { ENDPOINTS } from "../../runs/model/targets.ts";
import { printStamp, STAMP_FILE } from "../../runs/steps/facts/install-stamp.ts";
import { allSteps } from "../../runs/steps/index.ts";
import { Runbooks } from "../../runs/steps/scripts/runbooks.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { findMissing, findReferences } from "./references.ts";
import { findNeeds, type MeansOfImages, type StepNeeds } from "./start-checks.ts";

/** A machine and its cluster of which everything succeeds at once, so that a step comes by all that it ever asks for. */
function obedient() {
  let boot = 1;
  let power: "on" | "off" = "on";
  let source: "none" | "pxe" | "cd" | "disk" = "none";
  let token = "";
  const restart = async () => {
    boot += 1;
  };
  const files = (): Readonly<Record<string, string>> => ({
    "/proc/sys/kernel/random/boot_id": `b${boot}\n`,
    "/sys/class/dmi/id/product_uuid": "uuid-1\n",
    [STAMP_FILE]: printStamp({ image: anImage.ref, digest: anImage.digest, machine: "m-1", serial: "S1", token }),
  });
  const node = {
    name: "n1",
    uid: "u1",
    ready: true,
    reason: "",
    unschedulable: false,
    systemUuid: "uuid-1",
    bootId: null,
    kubeletVersion: null,
    matchedBy: "system_uuid",
  } as const;
  const identity = { serial: "S1", systemUuid: "uuid-1", vendor: "v", model: "m" };
  const can: Fakes = {
    system: {
      identify: async () => identity as never,
      readBoot: async () => ({ lastReset: `r${boot}`, progress: "running" }),
      readFirmware: async () => [],
    },
    boot: {
      readBootOverride: async () => ({ source, lasts: "once" }) as never,
      setBootOverride: async (_, wanted) => {
        source = wanted as typeof source;
      },
      clearBootOverride: async () => {
        source = "none";
      },
    },
    reset: { resetPower: restart },
    power: {
      readPower: async () => power,
      setPower: async (_, wanted) => {
        power = wanted;
        return { commanded: true } as never;
      },
    },
    imaging: {
      prepare: async () => {},
      start: restart,
      readProgress: async () => ({ inserted: true, armed: false }),
      cleanUp: async () => undefined,
    },
    netInstall: {
      check: async () => {},
      read: async () => ({ state: "installed", message: "", tokenShown: true, awaitsProof: false }),
    },
    locator: { setLocator: async () => {}, readLocator: async () => "lit" },
    sensors: { readHealth: async () => ({ status: "ok" }) as never, readLog: async () => [] },
    exec: {
      readFile: async (_, path) => ({ text: files()[path], hostKey: "ssh-ed25519 NEW" }),
      async run(_, { script }) {
        if (script.includes("systemctl reboot")) await restart();
        return exited(0, script.includes("echo absent") ? "ended 0\n" : "");
      },
    },
    cluster: {
      revokeJoin: async () => undefined,
      mintJoin: async () => ({ endpoint: "c:1", token: "t", caCertHash: "sha256:0", expiresAt: new Date() }),
      findNode: async () => node,
    },
  };
  return {
    can,
    installedBy: (evidence: JsonObject) => {
      token = String(evidence.token ?? "");
    },
  };
}

interface Case {
  readonly kind: string;
  readonly payload: JsonObject;
  readonly image: Image;
  readonly machine: Machine;
}

/** From beginning to end, with no credentials for one endpoint. Returns how it ended: `done`, or what it was refused. */
async function walk({ kind, payload, image, machine }: Case, without?: Endpoint): Promise<string> {
  const { can, installedBy } = obedient();
  const answer = async <T>(endpoint: Endpoint, target: T): Promise<T> => {
    if (endpoint === without) throw final("no credentials");
    return target;
  };
  const bench = benchOf(kind, payload, can, {
    machine,
    scripts: { "check.sh": "true" },
    targets: { bmc: () => answer("bmc", aBmc), ssh: () => answer("ssh", anSsh), image: async () => image },
  });
  try {
    const evidence = await bench.before();
    installedBy(evidence);
    await bench.act(evidence);
    const { state } = await bench.probe(evidence);
    await bench.undo(evidence);
    return state;
  } catch (error) {
    if (error instanceof StepFailure && error.message === "no credentials") return error.message;
    throw error;
  }
}

/** What is checked before the run is started. */
async function needsOf({ kind, payload, image, machine }: Case): Promise<StepNeeds> {
  const step = {
    kind,
    name: "it",
    payload: (allSteps.get(kind) as AnyStep).parse(payload, ""),
    timeoutSeconds: 1,
    maxRetries: 0,
  };
  const meansOf: MeansOfImages = async () =>
    new Map([
      [
        image.ref,
        {
          ...{ name: image.ref, kind: image.kind ?? "iso", location: image.location },
          ...{ successProof: image.proof ?? "ssh", seed: null, seedOn: null },
        },
      ],
    ]);
  const deps = { steps: allSteps, capabilitiesOf: () => new Set(Object.keys(obedient().can)) as never };
  const needs = await findNeeds(meansOf, deps, { machine, plan: { steps: [step] } as unknown as Plan });
  return needs.get(step) ?? { capabilities: [], endpoints: [], signIns: [], images: [] };
}

const byToken: Image = { ...anImage, kind: "netboot", proof: "token" };
const STEPS: readonly (readonly [what: string, kind: string, payload: JsonObject, image?: Image])[] = [
  ["a script", "ssh", { script_ref: "check.sh" }],
  ["a reboot by the BMC", "reboot", { mode: "bmc" }],
  ["a reboot from inside", "reboot", { mode: "in_band" }],
  ["a boot source", "netboot", { mode: "PXE" }],
  ["an installation from a medium", "repave", { image_ref: anImage.ref }],
  ["one over the network, proved over SSH", "repave", { image_ref: anImage.ref }, { ...byToken, proof: "ssh" }],
  ["one over the network, proved by its installer", "repave", { image_ref: anImage.ref }, byToken],
  ["a join", "join", {}],
  ["a verification", "verify", {}],
  ["a network change", "net", { params: { action: "reconfigure" } }],
  ["an RMA", "rma", { reason: "fan" }],
];
const RECORDS = [
  ["a BMC and SSH", {}],
  ["a BMC alone", { ssh: null }],
  ["SSH alone", { bmc: null }],
  ["neither", { bmc: null, ssh: null }],
] as const satisfies readonly (readonly [string, Partial<Machine["spec"]>])[];

describe("credentials are asked for before the run exactly where the step would fail without them:", () => {
  test("every kind of step is tried", () => {
    expect(new Set(STEPS.map(([, kind]) => kind))).toEqual(new Set(allSteps.keys()));
  });

  for (const [what, kind, payload, image = anImage] of STEPS)
    test.each(RECORDS)(`${what}, on a machine with %s`, async (_, spec) => {
      const one = { kind, payload, image, machine: aMachine(spec) };
      const { endpoints, signIns } = await needsOf(one);
      expect(signIns).toEqual(expect.arrayContaining([...endpoints]));
      // Refused for its endpoints already: no step is ever begun on it.
      if (endpoints.some((endpoint) => one.machine.spec[endpoint] === null)) return;
      expect(await walk(one)).toBe("done");
      for (const endpoint of ENDPOINTS) {
        const ended = await walk(one, endpoint);
        expect([endpoint, ended]).toEqual([endpoint, signIns.includes(endpoint) ? "no credentials" : "done"]);
      }
    });

  test("and never of a fake machine, which has none", async () => {
    const machine = aMachine({ provider: "fake" });
    expect(await needsOf({ kind: "repave", payload: { image_ref: "ubuntu" }, image: anImage, machine })).toMatchObject({
      signIns: [],
    });
  });
});

test("a directory of scripts that cannot be used is a warning for who keeps a plan, and refuses a run of a script", async () => {
  let isUsable = true;
  const runbooks = new Runbooks({}, () => {
    if (!isUsable) throw new Error("cannot be read");
    return { "site.sh": "true\n" };
  });
  const deps = { steps: allSteps, runbooks };
  const plan = validatePlan({
    planId: "p",
    displayName: "",
    steps: [{ name: "s", kind: "ssh", timeoutSeconds: 10, maxRetries: 0, payload: { script_ref: "site.sh" } }],
  });
  const db = {} as Queryable; // scripts are no rows
  expect(await findMissing(db, deps, plan)).toEqual([]);
  isUsable = false;
  expect(await findMissing(db, deps, plan)).toEqual([expect.stringContaining("cannot be used: cannot be read")]);
  const run = { machine: {} as never, plan };
  await expect(findReferences(db, deps, [run])).rejects.toMatchObject({ kind: "failed_precondition" });
});
