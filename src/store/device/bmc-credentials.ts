import { z } from "zod";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import { type CredentialPlace, placeOfBmc } from "../../capabilities/credential-place.ts";
import { AppError } from "../../kernel/errors.ts";
import { NotForThisAddress, type SecretStore } from "../access/secrets.ts";
import type { ThingKey } from "../lifecycle/things.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

export interface BmcCredentials {
  readonly username: string;
  readonly password: string;
}

/** One set of credentials a BMC, whichever things speak of it. */
const credentialName = (mac: string): string => `bmc/${mac}`;

/** Those of the operating system of a switch, by the MAC address of its BMC. */
const osCredentialName = (mac: string): string => `nvos/${mac}`;

/**
 * What to lock, together with the things themselves, before credentials of a BMC are put or removed. A shelf and an expected row
 * share them, and each may come or go without the other: only under this lock is it settled who still needs them.
 */
export const bmcKey = (mac: string): ThingKey => ({ kind: "bmc", id: mac });

const schema = z.object({ username: z.string(), password: z.string() });

/** A BMC, and where its credentials are sent from now on. */
export interface PlacedCredentials extends BmcCredentials {
  readonly mac: string;
  readonly place: CredentialPlace;
}

/** The caller holds the lock `bmcKey(mac)`. */
export async function putBmcCredentials(
  tx: Transaction,
  secrets: SecretStore,
  { mac, place, username, password }: PlacedCredentials,
  options?: { readonly withAddress: boolean },
): Promise<void> {
  await secrets.putFor(tx, { name: credentialName(mac), place }, JSON.stringify({ username, password }), options);
}

/** The same for the operating system of a switch. */
export async function putOsCredentials(
  tx: Transaction,
  secrets: SecretStore,
  { mac, place, username, password }: PlacedCredentials,
): Promise<void> {
  await secrets.putFor(tx, { name: osCredentialName(mac), place }, JSON.stringify({ username, password }));
}

/** The tables whose rows have a BMC and share its credentials. */
const OF_BMCS = ["power_shelves", "expected_power_shelves", "switches", "expected_switches"] as const;

/** Removes those that no device and no expected row speaks of any more; the caller holds the locks `bmcKey(mac)`. */
async function removeUnusedBmcCredentials(tx: Transaction, macs: readonly string[]): Promise<void> {
  if (macs.length === 0) return;
  const names = [credentialName, osCredentialName];
  const unused = OF_BMCS.map((table) => `not exists (select from ${table} t where t.bmc_mac = b.mac)`);
  await tx.query(
    `delete from secrets s using unnest($1::text[], $2::text[]) as b(name, mac)
      where s.name = b.name and ${unused.join(" and ")}`,
    [names.flatMap((name) => macs.map(name)), names.flatMap(() => macs)],
  );
  failPoint("bmc-credentials:removed");
}

/** For the stores of things that speak of a BMC: its credentials go with the last of them. */
export const sharesBmcCredentials = {
  locksWhenGone: ({ bmc }: OfBmc): readonly ThingKey[] => [bmcKey(bmc.mac)],
  afterGone: (tx: Transaction, things: readonly OfBmc[]): Promise<void> =>
    removeUnusedBmcCredentials(
      tx,
      things.map(({ bmc }) => bmc.mac),
    ),
};
interface OfBmc {
  readonly bmc: { readonly mac: string };
}

/** Never with the parser's own words: they quote what was being read. */
function parseCredentials(secret: string, mac: string): BmcCredentials | AppError {
  try {
    return schema.parse(JSON.parse(secret));
  } catch {
    return new AppError("failed_precondition", `the credentials for the BMC ${mac} are damaged`, {
      next: "store them again, as with UpdateExpectedPowerShelf",
    });
  }
}

/** The BMC of a device, whose MAC address names its credentials. */
export interface ReachedBmc {
  readonly mac: string;
  readonly target: Omit<BmcTarget, "username" | "password">;
}

/**
 * One query for many BMCs: each with what is needed to sign in, where its credentials were given for this address. A set that is
 * missing, unreadable or for another address is answered with its error.
 */
export async function signInToBmcs(
  db: Queryable,
  secrets: SecretStore,
  bmcs: readonly ReachedBmc[],
): Promise<(BmcTarget | AppError)[]> {
  const opened = await secrets.openFor(
    db,
    bmcs.map(({ mac, target }) => ({ name: credentialName(mac), place: placeOfTarget(target) })),
  );
  return bmcs.map(({ mac, target }, index) => {
    const secret = opened[index];
    if (secret === undefined) return noneFor(`the BMC ${mac}`);
    if (secret instanceof NotForThisAddress) return secret.about(`the credentials for the BMC ${mac}`, GIVE_AGAIN);
    if (secret instanceof AppError) return secret;
    const credentials = parseCredentials(secret.plaintext, mac);
    return credentials instanceof AppError
      ? credentials
      : { ...target, ...credentials, trust: withPin(target.trust, secret.pin) };
  });
}

/** The next certificate that the BMC shows is then pinned. */
export async function forgetPin(tx: Transaction, mac: string): Promise<void> {
  await tx.execute("update secrets set bound_pin = null where name = $1", [credentialName(mac)]);
  failPoint("bmc-credentials:pin-forgotten");
}

const GIVE_AGAIN =
  "millwright power-shelf set-credentials, or update the expected row with its address and its password";

const placeOfTarget = ({ trust, ...target }: ReachedBmc["target"]): CredentialPlace =>
  placeOfBmc({ ...target, trust: trust.mode });

/** The record has lost its pin with a change of address and is back: the pin holds still. */
const withPin = (trust: BmcTarget["trust"], pin: string | null): BmcTarget["trust"] =>
  trust.mode === "pin" && trust.fingerprint256 === undefined && pin !== null
    ? { mode: "pin", fingerprint256: pin }
    : trust;

const noneFor = (whose: string): AppError =>
  new AppError("failed_precondition", `there are no credentials for ${whose}`);

/** As whom, for rows that keep what is on record. Damaged credentials are of no use to anybody, and left out. */
export async function getBmcUsernames(
  db: Queryable,
  secrets: SecretStore,
  macs: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = await secrets.getManyAsStored(db, macs.map(credentialName));
  return new Map(
    macs.flatMap((mac) => {
      const secret = found.get(credentialName(mac));
      const credentials = typeof secret === "string" ? parseCredentials(secret, mac) : undefined;
      return credentials === undefined || credentials instanceof AppError ? [] : [[mac, credentials.username] as const];
    }),
  );
}

export type PlacedMac = Pick<PlacedCredentials, "mac" | "place">;

/**
 * One query for the operating systems of many switches, by the MAC addresses of their BMCs. A set that is missing, unreadable or for
 * another place is answered with its error.
 */
export async function signInToOs(
  db: Queryable,
  secrets: SecretStore,
  systems: readonly PlacedMac[],
): Promise<(BmcCredentials | AppError)[]> {
  const opened = await secrets.openFor(
    db,
    systems.map(({ mac, place }) => ({ name: osCredentialName(mac), place })),
  );
  return systems.map(({ mac }, index) => {
    const secret = opened[index];
    const whose = `the operating system of the switch with the BMC ${mac}`;
    if (secret === undefined) return noneFor(whose);
    if (secret instanceof NotForThisAddress) return secret.about(`the credentials for ${whose}`, GIVE_OS_AGAIN);
    return secret instanceof AppError ? secret : parseCredentials(secret.plaintext, mac);
  });
}

const GIVE_OS_AGAIN = "millwright expected-switch update, with the password of NVOS";
