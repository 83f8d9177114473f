import { childStep } from "../../src/runs/children/child-run.ts";
import type { Plan, Step } from "../../src/runs/model/plan/plan.ts";
import { bootDevicePlan, powerPlan } from "../../src/runs/plans/machine-power.ts";
import { setDevicePower } from "../../src/runs/steps/rack/set-device-power.ts";
import { updateFirmware } from "../../src/runs/steps/rack/update-firmware.ts";
import type { StepInput } from "../../src/services/run/plans.ts";

/** A script of the site's own, which takes its time. */
export const SITE_SCRIPT = { ref: "pause.sh", text: "echo pausing\nsleep 5\necho paused\n" } as const;

/** One step of each kind, and all that a simulated machine counts of it when it is carried out once; reading is not counted. */
export interface StepOnce {
  readonly kind: string;
  readonly step: StepInput;
  readonly effects: Readonly<Record<string, number>>;
  /** The plan around it, of a kind that no plan of a caller names. */
  readonly ownPlan?: Plan;
  /** It must be in the cluster already. */
  readonly needsNode?: true;
  /** Lines that its script writes, each once, in their order. */
  readonly says?: readonly string[];
  /** How much faster than life its machine is simulated, once it is on record that it was told to do something. */
  readonly speed: number;
}

const one = (kind: string, payload: StepInput["payload"] = {}): Pick<StepOnce, "kind" | "step" | "speed"> => ({
  kind,
  step: { name: kind, kind, payload, timeoutSeconds: 3_600, maxRetries: 0 },
  speed: 400,
});

export const STEP_KINDS: readonly StepOnce[] = [
  { ...one("reboot", { mode: "bmc" }), effects: { graceful_restart_commands: 1, resets: 1, boots: 1 } },
  { ...one("netboot", { mode: "PXE" }), effects: { boot_override_changes: 1 } },
  {
    ...one("repave", { image_ref: "ubuntu:22.04-k8s" }),
    effects: {
      media_inserts: 1,
      boot_override_changes: 1,
      force_restart_commands: 1,
      resets: 1,
      installs_started: 1,
      installs: 1,
      boots: 1,
      media_ejects: 1,
    },
  },
  {
    ...one("join"),
    effects: { background_processes: 1, joins_started: 1, joins: 1 },
    says: ["This node has joined the cluster:"],
  },
  { ...one("verify"), effects: {}, needsNode: true },
  {
    ...one("ssh", { script_ref: SITE_SCRIPT.ref }),
    effects: { background_processes: 1 },
    says: ["pausing", "paused"],
  },
  {
    ...one("net", { params: { action: "reconfigure" } }),
    effects: { background_processes: 1, network_changes: 1 },
    says: ["confirmed"],
  },
  {
    ...one("rma", { reason: "broken" }),
    effects: { power_off_commands: 1, resets: 1, power_changes: 1, locator_changes: 1 },
  },
];

const ownOne = (ownPlan: Plan): Pick<StepOnce, "kind" | "step" | "speed" | "ownPlan"> => {
  const [step] = ownPlan.steps;
  if (!step) throw new Error(`plan ${ownPlan.planId} has no step`);
  return { kind: step.kind, step, ownPlan, speed: 400 };
};

/** Those of short runs that have a call of their own. */
export const OWN_STEP_KINDS: readonly StepOnce[] = [
  { ...ownOne(powerPlan("off")), effects: { power_off_commands: 1, resets: 1, power_changes: 1 } },
  { ...ownOne(bootDevicePlan("pxe")), effects: { boot_override_changes: 1 } },
];

/** The firmware that a simulated machine is given. */
export const SITE_FIRMWARE = {
  digest: "sha256:of-the-site",
  version: "9.9.9",
  image: Buffer.from(`MILLWRIGHT-FW GB-2U-96C bmc 9.9.9\n${"image ".repeat(50_000)}`),
} as const;

const onDevice = (step: Step): StepOnce => ({
  ...ownOne({ planId: step.kind, displayName: step.kind, steps: [step] }),
  effects: {},
});

/** Those of the devices of racks. What a controller did of a flash is told by its list of flashes. */
export const DEVICE_STEP_KINDS: readonly StepOnce[] = [
  {
    ...onDevice(childStep(setDevicePower, { desired: "off" })),
    effects: { power_off_commands: 1, resets: 1, power_changes: 1 },
  },
  {
    ...onDevice(
      childStep(updateFirmware, {
        firmware_id: "fw",
        component: "bmc",
        version: SITE_FIRMWARE.version,
        digest: SITE_FIRMWARE.digest,
        targets: [],
        activation: "none",
        settle_seconds: 60,
      }),
    ),
    effects: { manager_restarts: 1 },
  },
];

const READING: ReadonlySet<string> = new Set(["ssh_commands"]);

type Counted = { readonly effects: Readonly<Record<string, number>> };

/** What was done to a machine between two looks at it. */
export function effectsSince(before: Counted, after: Counted): Record<string, number> {
  const changes = Object.entries(after.effects).map(
    ([name, count]) => [name, count - (before.effects[name] ?? 0)] as const,
  );
  return Object.fromEntries(changes.filter(([name, count]) => count !== 0 && !READING.has(name)));
}
