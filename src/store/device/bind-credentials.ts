import { type CredentialPlace, NOWHERE, type PlacedBmc, placeOfBmc } from "../../capabilities/credential-place.ts";
import { bmcPlaceOf, sshPlaceOf } from "../../lifecycles/machine/endpoint.ts";
import { nvosPlaceOf } from "../../lifecycles/switch/nvos-place.ts";
import { machineStore } from "../machine/machines.ts";
import type { Database, Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

const PAGE = 500;
/** What credentials are named for, with whose they are after it. */
const ENDPOINTS = ["bmc", "ssh", "nvos"] as const;
const ownerOf = (name: string): string => name.slice(name.indexOf("/") + 1);

/**
 * Binds credentials that are bound to nothing yet to the address that is on record: those from before there were places, and those
 * that a replica of an earlier version has written since. Returns how many. May be called at any time, by many at once: a value that
 * somebody binds or replaces meanwhile is left alone, and so is one of which no record speaks.
 */
export async function bindCredentials(db: Database): Promise<number> {
  let bound = 0;
  for (let after = ""; ; ) {
    const page = await db.query<{ name: string; nonce: Buffer }>(
      `select name, nonce from secrets
        where bound_nonce is distinct from nonce and split_part(name, '/', 1) = any($2) and name > $1 order by name limit ${PAGE}`,
      [after, ENDPOINTS],
    );
    if (page.length === 0) return bound;
    after = page.at(-1)?.name ?? after;
    const places = await placesOf(
      db,
      page.map(({ name }) => ownerOf(name)),
    );
    const known = page.flatMap(({ name, nonce }) => {
      const place = places.get(name);
      return place === undefined ? [] : [{ name, nonce, place }];
    });
    bound += await db.transaction((tx) => bind(tx, known));
  }
}

interface Binding {
  readonly name: string;
  readonly nonce: Buffer;
  readonly place: CredentialPlace;
}

async function bind(tx: Transaction, bindings: readonly Binding[]): Promise<number> {
  const count = await tx.execute(
    `update secrets s set bound_to = b.place, bound_pin = null, bound_nonce = s.nonce
       from unnest($1::text[], $2::bytea[], $3::text[]) as b(name, nonce, place)
      where s.name = b.name and s.nonce = b.nonce and s.bound_nonce is distinct from s.nonce`,
    [bindings.map(({ name }) => name), bindings.map(({ nonce }) => nonce), bindings.map(({ place }) => place)],
  );
  failPoint("credentials:bound");
  return count;
}

/** By the names of the credentials of these machines and MAC addresses. */
async function placesOf(db: Queryable, owners: readonly string[]): Promise<ReadonlyMap<string, CredentialPlace>> {
  const isMac = (owner: string) => owner.includes(":");
  const { things } = await machineStore.load(
    db,
    owners.filter((owner) => !isMac(owner)),
  );
  const devices = await db.query<DeviceRow>(
    `select distinct on (mac) * from (
       select bmc_mac as mac, bmc_address as address, bmc_port as port, bmc_scheme as scheme, bmc_trust as trust, null as nvos, 1 as rank
         from power_shelves where bmc_mac = any($1)
       union all select bmc_mac, bmc_address, bmc_port, bmc_scheme, bmc_trust, nvos_address, 1 from switches where bmc_mac = any($1)
       union all select bmc_mac, bmc_address, coalesce(bmc_port, 443), 'https', 'pin', null, 2 from expected_power_shelves where bmc_mac = any($1)
       union all select bmc_mac, bmc_address, coalesce(bmc_port, 443), 'https', 'pin', nvos_address, 2 from expected_switches where bmc_mac = any($1)
     ) of_bmcs order by mac, rank`,
    [owners.filter(isMac)],
  );
  return new Map([
    ...things.flatMap((machine) => [
      [`bmc/${machine.id}`, bmcPlaceOf(machine)] as const,
      [`ssh/${machine.id}`, sshPlaceOf(machine)] as const,
    ]),
    ...devices.flatMap(({ mac, nvos, ...bmc }) => [
      [`bmc/${mac}`, isPlaced(bmc) ? placeOfBmc(bmc) : NOWHERE] as const,
      [`nvos/${mac}`, nvosPlaceOf(nvos, bmc)] as const,
    ]),
  ]);
}

type DeviceRow = Omit<PlacedBmc, "address" | "isIpmi"> & {
  readonly mac: string;
  readonly address: string | null;
  readonly nvos: string | null;
};
const isPlaced = (bmc: Pick<DeviceRow, "address">): bmc is PlacedBmc => bmc.address !== null;
