import type { BootDevice, BootOverride, BootSource } from "../../../capabilities/boot-device.ts";
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
      `${nameOf(machine.target)}: this machine cannot be told to boot from ${source} (it offers ${listAt(allowed).join(", ") || "nothing"})`,
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

export async function clearNextBoot(machine: OpenMachine): Promise<void> {
  if (bootOverrideOf(machine.system).source === "none") return;
  await patchBoot(machine, { BootSourceOverrideEnabled: "Disabled" });
}

const patchBoot = ({ client, target, places, call }: OpenMachine, Boot: Resource): Promise<void> =>
  client.patch(target, places.system, { Boot }, call);
