import type { BootDevice, BootOverride, BootSource } from "../../../capabilities/boot-device.ts";
import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { nameOf } from "../../transport/bmc-gateway.ts";
import { listAt, type Resource, textAt, valueAt } from "../resource.ts";
import type { Machines, OpenMachine } from "./machine.ts";

const TARGETS = { pxe: "Pxe", http: "UefiHttp", disk: "Hdd", cd: "Cd" } as const satisfies Record<BootSource, string>;

export function createMachineBoot(machines: Machines): BootDevice {
  return {
    async readBootOverride(target, call) {
      return bootOverrideOf((await machines.open(target, call)).system);
    },
    async setBootOverride(target, source, call, options = {}) {
      await setNextBoot(await machines.open(target, call), source, options.httpUri);
    },
    async clearBootOverride(target, call) {
      await clearNextBoot(await machines.open(target, call));
    },
  };
}

/** What the machine itself says. A target without "Enabled" is a leftover that does nothing. */
export function bootOverrideOf(system: Resource): BootOverride {
  const enabled = textAt(system, "Boot", "BootSourceOverrideEnabled")?.toLowerCase();
  const named = textAt(system, "Boot", "BootSourceOverrideTarget")?.toLowerCase();
  if (enabled === undefined || enabled === "disabled" || named === undefined || named === "none") {
    return { source: "none", lasts: "once" };
  }
  const source = (Object.keys(TARGETS) as BootSource[]).find((each) => TARGETS[each].toLowerCase() === named);
  return { source: source ?? "other", lasts: enabled === "continuous" ? "always" : "once" };
}

export async function setNextBoot(machine: OpenMachine, source: BootSource, httpUri?: string): Promise<void> {
  const now = bootOverrideOf(machine.system);
  const knownUri = textAt(machine.system, "Boot", "HttpBootUri");
  // "always" is not sent again either: a BMC that keeps "once" as "always" would do so again.
  if (now.source === source && (httpUri === undefined || httpUri === knownUri)) return;
  const value = TARGETS[source];
  const allowed = valueAt(machine.system, "Boot", "BootSourceOverrideTarget@Redfish.AllowableValues");
  if (allowed !== undefined && !listAt(allowed).includes(value)) {
    throw bmcFailure(
      "unsupported",
      machine.target,
      `${nameOf(machine.target)}: this machine cannot be set to boot from ${source} (it offers ${listAt(allowed).join(", ") || "nothing"})`,
    );
  }
  await patchBoot(machine, {
    BootSourceOverrideEnabled: "Once",
    BootSourceOverrideTarget: value,
    // Booting over HTTP is a matter of UEFI alone, and some refuse it in another mode.
    ...(source === "http" ? { BootSourceOverrideMode: "UEFI" } : {}),
    ...(source === "http" && httpUri !== undefined ? { HttpBootUri: httpUri } : {}),
  });
}

/**
 * The words in which BMCs take "no override", in the order in which they are tried. Many want a target beside "Disabled"; some know
 * neither "None" nor "Disabled", and keep every override for ever: these are left at the disk.
 */
const CLEARED: readonly { readonly Boot: Resource; readonly target?: string }[] = [
  { Boot: { BootSourceOverrideEnabled: "Disabled", BootSourceOverrideTarget: "None" }, target: "None" },
  { Boot: { BootSourceOverrideEnabled: "Disabled" } },
  { Boot: { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: "Hdd" }, target: "Hdd" },
];
const IS_CLEARED: readonly BootOverride["source"][] = ["none", "disk"];

/** Tries one wording after another, until the BMC shows that the machine boots in its own order, or from its disk. */
export async function clearNextBoot(machine: OpenMachine): Promise<void> {
  const { client, target, places, call } = machine;
  let { source } = bootOverrideOf(machine.system);
  if (source === "none") return;
  const allowed = valueAt(machine.system, "Boot", "BootSourceOverrideTarget@Redfish.AllowableValues");
  let refusal: DeviceFailure | undefined;
  for (const { Boot, target: named } of CLEARED) {
    if (named !== undefined && allowed !== undefined && !listAt(allowed).includes(named)) continue;
    try {
      await patchBoot(machine, Boot);
      source = bootOverrideOf((await client.get(target, places.system, call)).resource).source;
      if (IS_CLEARED.includes(source)) return;
    } catch (error) {
      if (!isAboutTheWords(error)) throw error;
      refusal ??= error;
    }
  }
  throw (
    refusal ??
    bmcFailure(
      "refused_by_device",
      target,
      `${nameOf(target)}: the BMC accepts that the boot override is cleared, and still shows ${source}`,
    )
  );
}

/** The BMC answered to this one request. Emulators answer 500 to values that they do not know. */
const isAboutTheWords = (error: unknown): error is DeviceFailure =>
  error instanceof DeviceFailure && (error.status === 500 || error.status === 501 || error.family === "declines");

const patchBoot = ({ client, target, places, call }: OpenMachine, Boot: Resource): Promise<void> =>
  client.patch(target, places.system, { Boot }, call);
