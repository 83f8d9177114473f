import { findMachinesByMac, findMachinesByToken } from "../../store/machine/mac-owners.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { hashToken } from "./report-token.ts";

/** What a node shows of itself when it reports, or asks for its steps. */
interface Shown {
  readonly mac: string;
  readonly token?: string | undefined;
}

/** Whose each is, in their order: by the token of its boot where it shows one, and otherwise by the MAC address. */
export async function findOwners(db: Queryable, shown: readonly Shown[]): Promise<readonly (string | undefined)[]> {
  const withToken = shown.flatMap((each) => (each.token === undefined ? [] : [{ each, token: each.token }]));
  const proven = await findMachinesByToken(
    db,
    withToken.map(({ each: { mac }, token }) => ({ mac, tokenHash: hashToken(token) })),
  );
  const byToken = new Map(withToken.map(({ each }, index) => [each, proven[index]]));
  const byMac = await findMachinesByMac(
    db,
    shown.map(({ mac }) => mac),
  );
  return shown.map((each) => byToken.get(each) ?? byMac.get(each.mac));
}
