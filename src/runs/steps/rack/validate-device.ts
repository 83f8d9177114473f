import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { DeviceHealth } from "../../../capabilities/sensors.ts";
import { AppError } from "../../../kernel/errors.ts";
import { minutes } from "../../../kernel/time/duration.ts";
import { defineStepOn, type ProbeReport, type StepContext } from "../../model/step.ts";
import { describeVersions, isAt, partsFor, type WantedFirmware } from "./firmware-parts.ts";
import type { OnDevice } from "./on-device.ts";
import { unknownIfSilent } from "./reach-bmc.ts";

export type ValidateDevicePayload = { readonly wanted: readonly WantedFirmware[] };

type Uses = "power" | "sensors" | "vitals" | "firmware" | "inventory" | "system";
type Context = StepContext<ValidateDevicePayload, never, Uses, OnDevice>;

/** What is wrong with a device that is off. */
export const POWER = "the power";

/** One thing that a device must be; `shown` is what it is instead. */
interface Fault {
  readonly what: string;
  readonly expected: string;
  readonly shown: string;
}

/** Whether a device answers, is the one on record, is on, healthy and at the wanted versions. Changes nothing. */
export const validateDevice = defineStepOn<OnDevice>()({
  kind: "validate_device",
  needs: [],
  mayUse: ["power", "sensors", "vitals", "firmware", "inventory", "system"],
  defaults: { timeout: minutes(3), maxRetries: 0 },
  fromOutside: true,
  parse: (payload, field): ValidateDevicePayload => {
    if (Array.isArray(payload.wanted)) return payload as ValidateDevicePayload;
    throw new AppError("invalid_argument", `${field}.wanted: is required`, { field: `${field}.wanted` });
  },
  before: async () => ({}),
  act: async () => undefined,

  async probe(context): Promise<ProbeReport> {
    const target = await context.bmc();
    return unknownIfSilent(async () => {
      const faults = await findFaults(context, target);
      const [first] = faults;
      if (first === undefined) return { state: "done", message: "answers, is on, healthy and at the wanted versions" };
      const message = faults.map(({ what, expected, shown }) => `${what} is ${shown}, wanted ${expected}`).join("; ");
      const { what, expected, shown } = first;
      // A device that has just restarted may need a moment: it gets the step's time.
      return { state: "unknown", message, cause: { code: "device_unfit", facts: { what, expected, shown } } };
    });
  },
});

async function findFaults(context: Context, target: BmcTarget): Promise<readonly Fault[]> {
  const { can, call, payload, target: thing } = context;
  const faults: Fault[] = [];
  const { serial: expected = null } = thing.facts as { readonly serial?: string | null };
  const identity = await (can.inventory ?? can.system)?.identify(target, call);
  if (identity && expected !== null && identity.serial !== expected)
    faults.push({ what: "the serial number", expected, shown: identity.serial ?? "unknown" });
  const power = await can.power?.readPower(target, call);
  if (power !== undefined && power !== "on") faults.push({ what: POWER, expected: "on", shown: power });
  const health = await readHealth(context, target);
  if (health === "critical") faults.push({ what: "the health", expected: "ok", shown: health });
  if (payload.wanted.length === 0) return faults;
  const installed = (await can.firmware?.readInstalled(target, call)) ?? [];
  for (const wanted of payload.wanted) {
    const parts = partsFor(installed, wanted);
    if (!isAt(parts, wanted.version))
      faults.push({
        what: `the version of ${wanted.component}`,
        expected: wanted.version,
        shown: describeVersions(parts),
      });
  }
  return faults;
}

/** A warning is for people to see; it does not keep a rack from its work. */
async function readHealth({ can, call }: Context, target: BmcTarget): Promise<DeviceHealth["status"]> {
  if (can.vitals) return (await can.vitals.readVitals(target, call)).health;
  return (await can.sensors?.readHealth(target, call))?.status ?? "unknown";
}
