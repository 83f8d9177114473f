import { AppError } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { listProfiles } from "../../store/fleet/profiles.ts";
import { listRoceAssignments } from "../../store/fleet/roce.ts";
import { type FleetSite, fleetSites, insertSite, removeSite, updateSite } from "../../store/fleet/sites.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { givenSecret } from "../call/given-secret.ts";
import { actorOf } from "../call/initiator.ts";
import type { ListPage, ListRequest } from "../call/listing.ts";
import { type Catalog, changeEntry, createEntry, deleteEntry, pageEntries, refusal } from "../catalog/entries.ts";
import { asCallerError, callOf, maasOf, placeOfUrl } from "./site-target.ts";

export type { FleetSite } from "../../store/fleet/sites.ts";

const SITES: Catalog<FleetSite> = {
  kind: "fleet_site",
  noun: "fleet site",
  called: "a fleet site",
  table: fleetSites,
  async findUser(tx, name) {
    const [profile] = await listProfiles(tx, { site: name, limit: 1 });
    if (profile)
      return { does: `profile ${profile.name} belongs to`, next: `millwright fleet profile list --site ${name}` };
    const [roce] = await listRoceAssignments(tx, { site: name, limit: 1 });
    return (
      roce && {
        does: `the RoCE assignment of ${roce.hostname} belongs to`,
        next: `millwright fleet roce list --site ${name}`,
      }
    );
  },
  remove: ({ secrets }, tx, name) => removeSite(tx, secrets, name),
};

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const LONGEST_DESCRIPTION = 1_024;

export interface AddSite {
  readonly name: string;
  readonly url: string;
  readonly apiKey: string;
  readonly description: string;
  readonly retainInMaas: boolean;
  /** Lets the API key travel over http, where others can read it. */
  readonly allowHttp: boolean;
  /** Records the site without calling it. */
  readonly skipProbe: boolean;
}

/** Absent: as it is. */
export interface UpdateSite {
  readonly name: string;
  readonly url?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly description?: string | undefined;
  readonly isEnabled?: boolean | undefined;
  readonly retainInMaas?: boolean | undefined;
  readonly allowHttp: boolean;
  readonly skipProbe: boolean;
}

export async function addSite(deps: ServiceDeps, caller: Caller, input: AddSite): Promise<FleetSite> {
  const name = checkName(input.name);
  const { url, ...place } = checkUrl(input);
  const { value, stored: apiKey } = await givenSecret(deps, caller, input.apiKey, "api_key");
  maasOf(deps).checkKey(value);
  const { retainInMaas } = input;
  const description = checkDescription(input.description);
  if (!input.skipProbe) await probe(deps, { ...place, apiKey: value });
  return createEntry(deps, caller, SITES, {
    name,
    insert: (tx) =>
      insertSite(tx, deps.secrets, {
        ...{ name, url, description, retainInMaas, isEnabled: true },
        ...{ apiKey, createdBy: actorOf(caller) },
      }),
    data: { url },
  });
}

/** Another address takes the key again: nobody can have the key on record sent to a place of their own. */
export async function changeSite(deps: ServiceDeps, caller: Caller, input: UpdateSite): Promise<FleetSite> {
  const name = checkName(input.name);
  const before = await getSite(deps, name);
  const { url, ...place } = input.url === undefined ? placeOfUrl(before.url) : checkUrl({ ...input, url: input.url });
  const key = input.apiKey === undefined ? undefined : await givenSecret(deps, caller, input.apiKey, "api_key");
  const apiKey = key?.stored;
  if (url !== before.url && key === undefined)
    throw refusal(
      "api_key",
      "is required with another url: the key on record is sent to the place it was given for alone",
    );
  if (key !== undefined) {
    maasOf(deps).checkKey(key.value);
    if (!input.skipProbe) await probe(deps, { ...place, apiKey: key.value });
  }
  return changeEntry(deps, caller, SITES, {
    name,
    async change(tx, now) {
      // The key was given for the address that the caller saw.
      if (now.url !== before.url)
        throw new AppError("conflict", `fleet site ${name} was changed by another call; call again`);
      await updateSite(tx, deps.secrets, {
        ...{ name, url, apiKey },
        description: input.description === undefined ? now.description : checkDescription(input.description),
        isEnabled: input.isEnabled ?? now.isEnabled,
        retainInMaas: input.retainInMaas ?? now.retainInMaas,
      });
      return {
        url,
        ...(url !== now.url && { from_url: now.url }),
        ...(apiKey !== undefined && { api_key: "replaced" }),
        ...(input.isEnabled !== undefined && { enabled: input.isEnabled }),
        ...(input.retainInMaas !== undefined && { retain_in_maas: input.retainInMaas }),
      };
    },
  });
}

export async function getSite({ db }: { readonly db: Queryable }, name: string): Promise<FleetSite> {
  const [site] = await fleetSites.list(db, { names: [checkName(name)] });
  if (!site)
    throw new AppError("not_found", `fleet site ${name} does not exist`, {
      field: "name",
      next: "millwright fleet site list",
    });
  return site;
}

export const pageSites = (deps: ServiceDeps, request: ListRequest): Promise<ListPage<FleetSite>> =>
  pageEntries(deps, SITES, request);

export const deleteSite = async (deps: ServiceDeps, caller: Caller, name: string): Promise<void> =>
  deleteEntry(deps, caller, SITES, checkName(name));

export function checkName(text: string, field = "name"): string {
  if (NAME.test(text)) return text;
  throw refusal(field, `${JSON.stringify(text.slice(0, 80))} must be 1 to 63 letters a-z, digits and dashes`);
}

function checkUrl({ url, allowHttp }: Pick<AddSite, "url" | "allowHttp">) {
  const place = placeOfUrl(url);
  if (place.scheme === "http" && !allowHttp)
    throw refusal(
      "url",
      "is http: the API key would travel unencrypted; give the https address, or allow it with --allow-http",
    );
  return place;
}

function checkDescription(text: string): string {
  if (text.length <= LONGEST_DESCRIPTION && isPrintable(text)) return text;
  throw refusal("description", `must be printable, with at most ${LONGEST_DESCRIPTION} characters`);
}

const HINT = "; --skip-probe records it all the same";

async function probe(deps: ServiceDeps, target: Parameters<ReturnType<typeof maasOf>["readUser"]>[0]): Promise<void> {
  const maas = maasOf(deps);
  await asCallerError("url", () => maas.readVersion(target, callOf("probe of MAAS")), HINT);
  await asCallerError("api_key", () => maas.readUser(target, callOf("probe of MAAS")), HINT);
}
