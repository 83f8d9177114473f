import { ApiFailure, conflict, invalid } from "./api-failure.ts";
import type { Form } from "./form.ts";
import type { MachineRecord } from "./machine-record.ts";
import type { Region } from "./region.ts";
import * as status from "./statuses.ts";

/** The user whose key everybody uses. */
export const USER = "admin";
export const SERIES = ["jammy", "noble"] as const;

const seconds = (count: number): number => count * 1_000;
/** Simulated time. */
const TAKES = {
  commissioning: seconds(300),
  powerProblem: seconds(30),
  deploying: seconds(600),
  deployFailure: seconds(300),
  releasing: seconds(60),
  erasing: seconds(300),
} as const;
const RELEASABLE: readonly status.MaasStatus[] = [
  status.ALLOCATED,
  status.RESERVED,
  status.BROKEN,
  status.DEPLOYING,
  status.DEPLOYED,
  status.FAILED_DEPLOYMENT,
  status.FAILED_DISK_ERASING,
  status.FAILED_RELEASING,
];

type Operation = (region: Region, machine: MachineRecord, form: Form) => MachineRecord | null;

/** What `op=` may say of one machine, by POST. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  commission,
  abort,
  deploy,
  release,
  power_on: powerOn,
  power_off: powerOff,
  mark_broken: markBroken,
  mark_fixed: markFixed,
  lock: (region, machine) => locked(region, machine, true),
  unlock: (region, machine) => locked(region, machine, false),
  set_owner_data: (region, machine, form) => annotate(region, machine, form),
  set_workload_annotations: (region, machine, form) => annotate(region, machine, form),
  set_storage_layout: setStorageLayout,
};

const after = (region: Region, ms: number, to: status.MaasStatus, why = ""): MachineRecord["due"] => ({
  at: region.clock.now() + ms,
  to,
  why,
});

export function commission(region: Region, machine: MachineRecord): MachineRecord {
  if (machine.powerType === "")
    throw conflict("Unconfigured power type. Please configure the power type and try again.");
  const begun = { ...region.moved(machine, status.COMMISSIONING), power: "on" as const };
  if (!reaches(region, machine)) {
    const why = `Failed to power on node - Power on for the node failed: ${machine.powerParameters.power_address ?? "?"}: could not sign in to the BMC.`;
    return region.save({ ...begun, due: after(region, TAKES.powerProblem, status.FAILED_COMMISSIONING, why) });
  }
  if (region.goesWrong("commissioning_stuck", machine)) return region.save(begun);
  if (region.goesWrong("testing_fails", machine))
    return region.save({ ...begun, due: after(region, TAKES.commissioning, status.TESTING) });
  const due = region.goesWrong("commissioning_fails", machine)
    ? after(
        region,
        TAKES.commissioning,
        status.FAILED_COMMISSIONING,
        "20-maas-01-install-lldpd failed with exit status 1",
      )
    : after(region, TAKES.commissioning, status.READY);
  return region.save({ ...begun, due });
}

/** Whether what MAAS was told of the management controller is true. */
function reaches(region: Region, machine: MachineRecord): boolean {
  const host = region.hostOf(machine);
  const { power_address, power_user, power_pass } = machine.powerParameters;
  if (host === undefined || machine.powerType !== "ipmi") return host !== undefined;
  return power_address === host.ipmiAddress && power_user === host.username && power_pass === host.password;
}

function abort(region: Region, machine: MachineRecord): MachineRecord {
  const to: Partial<Record<status.MaasStatus, status.MaasStatus>> = {
    [status.COMMISSIONING]: status.NEW,
    [status.DEPLOYING]: status.ALLOCATED,
    [status.DISK_ERASING]: status.FAILED_DISK_ERASING,
    [status.TESTING]: machine.previous,
  };
  const next = to[machine.status];
  if (next === undefined)
    throw conflict(`Node is not in a state that can be aborted: ${status.nameOf(machine.status)}.`);
  return region.save({ ...region.moved(machine, next), power: "off" });
}

function deploy(region: Region, machine: MachineRecord, form: Form): MachineRecord {
  if (machine.status !== status.READY && machine.status !== status.ALLOCATED)
    throw conflict(`Can't deploy a machine that is in the '${status.nameOf(machine.status)}' state`);
  const series = form.get("distro_series")?.split("/").at(-1) || SERIES[0];
  if (!(SERIES as readonly string[]).includes(series))
    throw invalid(
      "distro_series",
      `'${series}' is not a valid distro_series. It should be one of: ${SERIES.join(", ")}.`,
    );
  if (machine.interfaces.every(({ links }) => links.every(({ mode }) => mode === "link_up")))
    throw invalid("network", "Node must be configured to use a network");
  const owned = machine.status === status.READY ? region.moved(machine, status.ALLOCATED) : machine;
  const begun: MachineRecord = {
    ...region.moved(owned, status.DEPLOYING),
    power: "on",
    owner: USER,
    distroSeries: series,
    userData: form.get("user_data") ?? null,
    hardwareSync: syncsHardware(region, machine, form) ? { intervalSeconds: 900 } : null,
  };
  return region.save({ ...begun, due: endOfDeployment(region, begun) });
}

/** A region before 3.2 takes the word and does nothing with it. */
const syncsHardware = (region: Region, machine: MachineRecord, form: Form): boolean =>
  form.isTrue("enable_hw_sync") && !region.goesWrong("hardware_sync_ignored", machine);

function endOfDeployment(region: Region, machine: MachineRecord): MachineRecord["due"] {
  const failed = (why: string) => after(region, TAKES.deployFailure, status.FAILED_DEPLOYMENT, why);
  if (region.goesWrong("deploy_stuck", machine)) return null;
  if (region.goesWrong("deploy_datasource_fails", machine))
    return failed("cloud-init: Can not apply stage final, no datasource found! Likely bad things to come!");
  if (region.goesWrong("deploy_fails", machine))
    return failed(
      "curtin: Installation failed with exception: Unexpected error while running command: mkfs.ext4 /dev/sda2",
    );
  return after(region, TAKES.deploying, status.DEPLOYED);
}

const isReleased = ({ status: is }: MachineRecord): boolean => is === status.READY || is === status.RELEASING;
export const mayRelease = (machine: MachineRecord): boolean =>
  isReleased(machine) || (RELEASABLE.includes(machine.status) && !machine.isLocked);

export function release(region: Region, machine: MachineRecord, form: Form): MachineRecord {
  if (isReleased(machine)) return machine;
  if (!RELEASABLE.includes(machine.status))
    throw conflict(`Machine cannot be released in its current state ('${status.nameOf(machine.status)}').`);
  if (machine.isLocked) throw conflict(`Machine ${machine.hostname} is locked.`);
  if (!form.isTrue("erase")) {
    const begun = region.moved(machine, status.RELEASING);
    if (region.goesWrong("release_fails", machine)) {
      const why = "Failed to power off node - Power off for the node failed: the BMC does not answer.";
      return region.save({ ...begun, due: after(region, TAKES.releasing, status.FAILED_RELEASING, why) });
    }
    return region.save({ ...begun, due: after(region, machine.power === "off" ? 0 : TAKES.releasing, status.READY) });
  }
  const begun = region.moved(machine, status.DISK_ERASING);
  const due = region.goesWrong("erase_fails", machine)
    ? after(region, TAKES.erasing, status.FAILED_DISK_ERASING, "wipe-disks: nvme0n1: secure erase failed")
    : after(region, TAKES.erasing, status.READY);
  return region.save({ ...begun, power: "on", due });
}

function powerOn(region: Region, machine: MachineRecord): MachineRecord {
  if (machine.owner === null) throw conflict("Can't power on a machine that is not allocated to anybody.");
  return region.save(region.noted({ ...machine, power: "on" }, "INFO", "Node powered on", ""));
}

function powerOff(region: Region, machine: MachineRecord): MachineRecord | null {
  if (machine.powerType === "" || region.goesWrong("power_off_ignored", machine)) return null;
  return region.save(region.noted({ ...machine, power: "off" }, "INFO", "Node powered off", ""));
}

function markBroken(region: Region, machine: MachineRecord, form: Form): MachineRecord {
  const broken = region.moved(machine, status.BROKEN);
  return region.save({ ...broken, errorDescription: form.get("comment") ?? form.get("error_description") ?? "" });
}

function markFixed(region: Region, machine: MachineRecord): MachineRecord {
  if (machine.status !== status.BROKEN)
    throw conflict(`Can't mark a machine that is not broken as fixed: it is ${status.nameOf(machine.status)}.`);
  const to = machine.previous === status.DEPLOYED ? status.DEPLOYED : status.READY;
  return region.save({ ...region.moved(machine, to), errorDescription: "" });
}

function locked(region: Region, machine: MachineRecord, isLocked: boolean): MachineRecord {
  if (machine.isLocked === isLocked) throw conflict(isLocked ? "Machine is already locked." : "Machine is not locked.");
  return region.save({ ...machine, isLocked });
}

function annotate(region: Region, machine: MachineRecord, form: Form): MachineRecord {
  const given = Object.entries(form.startingWith(""));
  const kept = Object.entries({ ...machine.ownerData, ...Object.fromEntries(given) }).filter(
    ([, value]) => value !== "",
  );
  return region.save({ ...machine, ownerData: Object.fromEntries(kept) });
}

const LAYOUTS = ["flat", "lvm", "bcache", "vmfs6", "vmfs7", "custom", "blank"];

function setStorageLayout(region: Region, machine: MachineRecord, form: Form): MachineRecord {
  if (machine.status !== status.READY)
    throw conflict(`Cannot change the storage layout on a machine unless the machine is 'Ready'.`);
  const layout = form.get("storage_layout") ?? "";
  if (!LAYOUTS.includes(layout))
    throw invalid(
      "storage_layout",
      `'${layout}' is not a valid storage_layout. It should be one of: ${LAYOUTS.join(", ")}.`,
    );
  if (machine.storage === null)
    throw new ApiFailure(400, "Machine is missing a boot disk; no storage layout can be applied.");
  const root = form.get("root_device");
  return region.save({
    ...machine,
    storage: { ...machine.storage, layout, ...(root !== undefined && { bootDisk: Number(root) }) },
  });
}
