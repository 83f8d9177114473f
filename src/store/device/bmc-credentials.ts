import { z } from "zod";
import { AppError } from "../../kernel/errors.ts";
import type { SecretStore } from "../access/secrets.ts";
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

/** The caller holds the lock `bmcKey(mac)`. */
export async function putBmcCredentials(
  tx: Transaction,
  secrets: SecretStore,
  mac: string,
  credentials: BmcCredentials,
): Promise<void> {
  await secrets.put(tx, credentialName(mac), JSON.stringify(credentials));
}

/** The same for the operating system of a switch. */
export async function putOsCredentials(
  tx: Transaction,
  secrets: SecretStore,
  mac: string,
  credentials: BmcCredentials,
): Promise<void> {
  await secrets.put(tx, osCredentialName(mac), JSON.stringify(credentials));
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

type GetCredentials = (
  db: Queryable,
  secrets: SecretStore,
  macs: readonly string[],
) => Promise<(BmcCredentials | AppError)[]>;

const getCredentials =
  (nameOf: (mac: string) => string, whose: string): GetCredentials =>
  async (db, secrets, macs) => {
    const found = await secrets.getMany(db, macs.map(nameOf));
    return macs.map((mac) => {
      const secret = found.get(nameOf(mac));
      if (secret === undefined)
        return new AppError("failed_precondition", `there are no credentials for ${whose} ${mac}`);
      return typeof secret === "string" ? parseCredentials(secret, mac) : secret;
    });
  };

/** One query for many BMCs; a set that is missing or unreadable is answered with its error. */
export const getBmcCredentials = getCredentials(credentialName, "the BMC");

/** The same for the operating systems of switches. */
export const getOsCredentials = getCredentials(osCredentialName, "the operating system of the switch with the BMC");
