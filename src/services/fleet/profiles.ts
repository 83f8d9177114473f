import { z } from "zod";
import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { DEFAULT_POLICY, type FleetPolicy } from "../../lifecycles/fleet-node/policy.ts";
import { type FleetProfile, listProfiles, putProfile, removeProfile } from "../../store/fleet/profiles.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import { checkPageSize, cutPage, type Page, parsePageToken } from "../call/paging.ts";
import { audit } from "../catalog/audit.ts";
import { refusal } from "../catalog/entries.ts";
import { checkName, getSite } from "./sites.ts";

export type { FleetPolicy } from "../../lifecycles/fleet-node/policy.ts";
export type { FleetProfile } from "../../store/fleet/profiles.ts";

const KIND = "fleet_profile";
const idOf = (site: string, name: string): string => `${site}/${name}`;

export interface SetProfile {
  readonly site: string;
  readonly name: string;
  /** The fields that differ from their defaults. */
  readonly policy?: unknown;
}

/** Makes the profile, or replaces the one of that name whole. */
export async function setProfile(deps: ServiceDeps, caller: Caller, input: SetProfile): Promise<FleetProfile> {
  const [site, name] = [checkName(input.site, "site"), checkName(input.name)];
  const policy = checkPolicy(input.policy);
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "fleet_site", id: site }]);
    await getSite({ db: tx }, site);
    const [before] = await listProfiles(tx, { site, name });
    await putProfile(tx, { site, name, policy, createdBy: actorOf(caller) });
    const type = before ? "changed" : "created";
    await audit(tx, caller, { kind: KIND, id: idOf(site, name), type, data: policy as JsonObject });
    const [row] = await listProfiles(tx, { site, name });
    if (!row) throw new Error(`profile ${name} was written and is not there`);
    return row;
  });
}

export async function getProfile(deps: Pick<ServiceDeps, "db">, site: string, name: string): Promise<FleetProfile> {
  const [profile] = await listProfiles(deps.db, { site: checkName(site, "site"), name: checkName(name) });
  if (!profile) throw unknownProfile(site, name);
  return profile;
}

/** In the order of sites and names; of one site, or all. */
export async function pageProfiles(
  deps: ServiceDeps,
  request: { readonly site: string; readonly pageSize: number; readonly pageToken: string },
): Promise<Page<FleetProfile>> {
  const site = request.site === "" ? undefined : checkName(request.site, "site");
  const query = { of: "fleet_profiles", site: site ?? "" };
  const size = checkPageSize(request.pageSize);
  const after = parsePageToken(deps.secrets, request.pageToken, query, 2);
  const rows = await listProfiles(deps.db, { ...(site !== undefined && { site }), after, limit: size + 1 });
  return cutPage(deps.secrets, rows, size, query, (row) => [row.site, row.name]);
}

export async function deleteProfile(deps: ServiceDeps, caller: Caller, site: string, name: string): Promise<void> {
  const id = idOf(checkName(site, "site"), checkName(name));
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "fleet_site", id: site }]);
    if (!(await removeProfile(tx, site, name))) throw unknownProfile(site, name);
    await audit(tx, caller, { kind: KIND, id, type: "deleted", data: {} });
  });
}

const unknownProfile = (site: string, name: string): AppError =>
  new AppError("not_found", `fleet profile ${name} does not exist at site ${site}`, {
    field: "name",
    next: `millwright fleet profile list --site ${site}`,
  });

const policySchema = z.strictObject({
  site_bootstrap_bundle_ref: z.string().min(1).max(253).nullable(),
  strict_pxe_preflight: z.boolean(),
  enable_phase2_roce: z.boolean(),
  require_hw_sync: z.boolean(),
  hardware_sync_interval: z.string().regex(/^[1-9][0-9]{0,4}[smhd]$/, "must be a number and s, m, h or d, such as 15m"),
  release_fallback_no_erase: z.boolean(),
  enable_deploy_retry_on_datasource_failure: z.boolean(),
  max_deploy_retry_attempts: z.int().min(0).max(10),
  auto_claim_single_new_machine: z.boolean(),
  batch_max_parallel: z.int().min(1).max(100),
  enrollment_token_ttl_seconds: z.int().min(60).max(604_800),
  ssh_username: z
    .string()
    .regex(/^[a-z_][a-z0-9_-]{0,31}$/, "must be the name of an account")
    .nullable(),
  distro_series: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._/-]{0,62}$/, "must be a series such as jammy")
    .nullable(),
} satisfies Record<keyof FleetPolicy, z.ZodType>);

/** The fields as they were given, so that a default that changes later holds for profiles that did not say. */
function checkPolicy(given: unknown): Partial<FleetPolicy> {
  const result = policySchema.partial().safeParse(given ?? {});
  if (result.success) return given === undefined ? {} : (given as Partial<FleetPolicy>);
  const [issue] = result.error.issues;
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  if (unknown !== undefined)
    throw refusal(
      `policy.${unknown.slice(0, 80)}`,
      `is no field; the fields are ${Object.keys(DEFAULT_POLICY).join(", ")}`,
    );
  throw refusal(["policy", ...(issue?.path ?? [])].join("."), issue?.message ?? "is not a policy");
}
