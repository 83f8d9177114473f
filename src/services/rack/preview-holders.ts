import type { Work } from "../../lifecycles/rack/plan-work.ts";
import type { Rack } from "../../lifecycles/rack/rack.ts";
import { findInTheWay, type QueuedClaim } from "../../store/lifecycle/claims/claims.ts";
import { wishToEnter } from "../../store/lifecycle/claims/wishes.ts";
import { nameOf, storeOf, type ThingKey } from "../../store/lifecycle/things.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { linkOf } from "../explain/claims-in-the-way.ts";
import { RACK_KIND } from "./find-rack.ts";

export interface PreviewedHolder {
  readonly holder: ThingKey;
  readonly does: string;
  readonly since: Date;
  readonly devices: readonly ThingKey[];
}

/** Whom the maintenance would wait for: by the claims that the rack would ask for, judged as they would be. */
export async function findHolders(
  { db, stores }: Pick<ServiceDeps, "db" | "stores">,
  rack: Rack,
  { workSet }: Work,
): Promise<readonly PreviewedHolder[]> {
  const entering = { ...rack, facts: { ...rack.facts, workSet }, state: { name: "maintenance" } };
  const wish = wishToEnter(storeOf(stores, RACK_KIND), entering, "maintenance");
  const inTheWay = (await findInTheWay(db, [wish])).get(wish) ?? [];
  const byHolder = Map.groupBy(inTheWay, ({ holder, standing }) => `${nameOf(holder)} ${standing === "waiting"}`);
  return Promise.all(
    [...byHolder.values()].map(async (claims) => {
      const [first] = claims as [QueuedClaim];
      const { holder, reason, since } = await linkOf(db, stores, first);
      return { holder, does: reason, since, devices: claims.map(({ thing }) => thing) };
    }),
  );
}
