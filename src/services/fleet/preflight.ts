import { isSilence } from "../../capabilities/device-failure.ts";
import type { MaasTarget } from "../../capabilities/fleet/maas.ts";
import { messageOf } from "../../kernel/errors.ts";
import { listProfiles } from "../../store/fleet/profiles.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { callOf, type MaasGate, maasOf, targetOfSite } from "./site-target.ts";
import { getSite } from "./sites.ts";

export const PREFLIGHT_CHECKS = [
  "maas_answers",
  "api_key_accepted",
  "api_key_is_admin",
  "images_synced",
  "rack_controllers_known",
  "subnet_with_dhcp",
  "hardware_sync_interval",
] as const;
export type PreflightCheck = (typeof PREFLIGHT_CHECKS)[number];

export interface PreflightResult {
  readonly check: PreflightCheck;
  /** skipped: an earlier check failed, so that this one could not be made. */
  readonly is: "passed" | "failed" | "skipped";
  /** What was found. */
  readonly message: string;
  /** What helps; empty where it passed. */
  readonly next: string;
}

export interface Preflight {
  readonly site: string;
  /** Of MAAS; empty where it did not answer. */
  readonly version: string;
  readonly results: readonly PreflightResult[];
}

interface Finding {
  readonly ok: boolean;
  readonly message: string;
  readonly next?: string;
}

/** Whether nodes can be onboarded at the site now. Reads, and changes nothing. */
export async function preflightSite(deps: ServiceDeps, name: string): Promise<Preflight> {
  const site = await getSite(deps, name);
  const target = await targetOfSite(deps, site);
  const maas = maasOf(deps);
  const profiles = await listProfiles(deps.db, { site: name });
  const series = [...new Set(profiles.flatMap(({ policy }) => policy.distro_series ?? []))];
  const needsSync = profiles.some(({ policy }) => policy.require_hw_sync);
  let version = "";
  const checks: Readonly<Record<PreflightCheck, () => Promise<Finding>>> = {
    maas_answers: async () => {
      version = await maas.readVersion(target, callOf("preflight"));
      return { ok: true, message: `MAAS ${version} answers at ${site.url}` };
    },
    api_key_accepted: () => checkKey(maas, target, name),
    api_key_is_admin: () => checkAdmin(maas, target, name),
    images_synced: () => checkImages(maas, target, series),
    rack_controllers_known: () => checkRackControllers(maas, target),
    subnet_with_dhcp: () => checkSubnets(maas, target),
    hardware_sync_interval: () => checkSync(maas, target, needsSync),
  };
  const results: PreflightResult[] = [];
  for (const check of PREFLIGHT_CHECKS) results.push(await resultOf(check, checks[check], results));
  return { site: name, version, results };
}

/** Without an answer, or without a key, nothing else can be found out. */
const NEEDED: readonly PreflightCheck[] = ["maas_answers", "api_key_accepted"];

async function resultOf(
  check: PreflightCheck,
  make: () => Promise<Finding>,
  before: readonly PreflightResult[],
): Promise<PreflightResult> {
  const missing = before.find((each) => NEEDED.includes(each.check) && each.is !== "passed");
  if (missing) return { check, is: "skipped", message: `${missing.check} did not pass`, next: "" };
  try {
    const { ok, message, next = "" } = await make();
    return { check, is: ok ? "passed" : "failed", message, next };
  } catch (error) {
    const next = isSilence(error) ? "check that MAAS runs and that its address is right" : "";
    return { check, is: "failed", message: messageOf(error), next };
  }
}

async function checkKey(maas: MaasGate, target: MaasTarget, site: string): Promise<Finding> {
  try {
    const { name } = await maas.readUser(target, callOf("preflight"));
    return { ok: true, message: `the API key is that of ${name}` };
  } catch (error) {
    if (isSilence(error)) throw error;
    return {
      ok: false,
      message: messageOf(error),
      next: `millwright fleet site update ${site} --api-key-file <file>`,
    };
  }
}

async function checkAdmin(maas: MaasGate, target: MaasTarget, site: string): Promise<Finding> {
  const { name, isAdmin } = await maas.readUser(target, callOf("preflight"));
  return isAdmin
    ? { ok: true, message: `${name} is an administrator` }
    : {
        ok: false,
        message: `${name} is no administrator of MAAS: it cannot create and commission machines`,
        next: `millwright fleet site update ${site} --api-key-file <file>`,
      };
}

async function checkImages(maas: MaasGate, target: MaasTarget, wanted: readonly string[]): Promise<Finding> {
  const images = await maas.listImages(target, callOf("preflight"));
  const has = (series: string) => images.some((image) => image === series || image.endsWith(`/${series}`));
  const missing = wanted.filter((series) => !has(series));
  if (images.length === 0)
    return { ok: false, message: "MAAS has no image", next: "sync an image of Ubuntu in MAAS, under Images" };
  return missing.length === 0
    ? { ok: true, message: `MAAS has ${images.join(", ")}` }
    : {
        ok: false,
        message: `profiles name ${missing.join(", ")}, which MAAS does not have; it has ${images.join(", ")}`,
        next: "sync the image in MAAS, under Images",
      };
}

async function checkRackControllers(maas: MaasGate, target: MaasTarget): Promise<Finding> {
  const names = await maas.listRackControllers(target, callOf("preflight"));
  return names.length > 0
    ? { ok: true, message: `MAAS has the rack controllers ${names.join(", ")}` }
    : { ok: false, message: "MAAS has no rack controller: no machine can boot", next: "register one in MAAS" };
}

async function checkSubnets(maas: MaasGate, target: MaasTarget): Promise<Finding> {
  const subnets = (await maas.listSubnets(target, callOf("preflight"))).filter(({ hasDhcp }) => hasDhcp);
  return subnets.length > 0
    ? { ok: true, message: `MAAS serves DHCP in ${subnets.map(({ cidr }) => cidr).join(", ")}` }
    : {
        ok: false,
        message: "MAAS serves DHCP in no subnet",
        next: "enable DHCP for the VLAN of the boot ports in MAAS",
      };
}

async function checkSync(maas: MaasGate, target: MaasTarget, isNeeded: boolean): Promise<Finding> {
  const interval = await maas.readSetting(target, "hardware_sync_interval", callOf("preflight"));
  const ok = typeof interval === "string" && interval !== "";
  if (ok) return { ok, message: `MAAS syncs hardware every ${interval}` };
  return isNeeded
    ? {
        ok,
        message: "MAAS does not sync hardware, and profiles require it",
        next: "set hardware_sync_interval in MAAS",
      }
    : { ok: true, message: "MAAS does not sync hardware, and no profile requires it" };
}
