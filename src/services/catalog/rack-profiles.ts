import { isDeepStrictEqual } from "node:util";
import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { ProfilePart, RackProfile } from "../../lifecycles/rack/profile.ts";
import {
  listRackProfiles,
  listRacksOfProfile,
  putRackProfile,
  removeRackProfile,
} from "../../store/catalog/rack-profiles.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import { rackKeys } from "../device/racks.ts";
import { audit } from "./audit.ts";
import { refusal } from "./entries.ts";

export type { ProfilePart, RackProfile } from "../../lifecycles/rack/profile.ts";

const KIND = "rack_profile";
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const WORD = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const MOST_DEVICES = 1_000;
const MOST_WATTS = 1_000_000;

/** The topologies that the fabric of a rack can have, in the words of the contract. */
export const TOPOLOGIES = [
  "gb200_nvl36r1_c2g4",
  "gb300_nvl36r1_c2g4",
  "gb200_nvl72r1_c2g4",
  "gb300_nvl72r1_c2g4",
  "vr_nvl8r1_c2g4_rtf",
  "vr_nvl72r1_c2g4",
] as const;
export type Topology = (typeof TOPOLOGIES)[number];

export const pageRackProfiles = (deps: ServiceDeps): Promise<RackProfile[]> => listRackProfiles(deps.db);

export async function getRackProfile(deps: ServiceDeps, name: string): Promise<RackProfile | undefined> {
  return (await listRackProfiles(deps.db, [name]))[0];
}

/** Makes the profile, or replaces the one of that name. Racks that name it get a pass: what they should consist of may have changed. */
export async function putProfile(deps: ServiceDeps, caller: Caller, profile: RackProfile): Promise<void> {
  checkProfile(profile);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id: profile.name }]);
    const [before] = await listRackProfiles(tx, [profile.name]);
    if (isDeepStrictEqual(before, profile)) return;
    await putRackProfile(tx, profile, actorOf(caller));
    const data = JSON.parse(JSON.stringify(profile)) as JsonObject;
    await audit(tx, caller, { kind: KIND, id: profile.name, type: before ? "changed" : "created", data });
    await work.wake(tx, rackKeys(await listRacksOfProfile(tx, profile.name)));
  });
}

export async function deleteProfile(deps: ServiceDeps, caller: Caller, name: string): Promise<void> {
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id: name }]);
    const [user] = await listRacksOfProfile(tx, name);
    if (user !== undefined) {
      throw new AppError("failed_precondition", `rack profile ${name} cannot be deleted: rack ${user} names it`, {
        field: "name",
        next: `millwright rack show ${user}`,
      });
    }
    if (!(await removeRackProfile(tx, name))) {
      throw new AppError("not_found", `rack profile ${name.slice(0, 80)} does not exist`, {
        field: "name",
        next: "millwright rack profile list",
      });
    }
    await audit(tx, caller, { kind: KIND, id: name, type: "deleted", data: {} });
  });
}

function checkProfile({ name, hardwareType, topology, compute, switches, powerShelves }: RackProfile): void {
  if (!NAME.test(name)) throw refusal("name", "must have 1 to 64 letters, digits, dots, dashes or underscores");
  if (hardwareType !== null && !WORD.test(hardwareType))
    throw refusal("hardware_type", "must be a word such as gb200_nvl72");
  if (topology !== null && !TOPOLOGIES.some((word) => word === topology))
    throw refusal("topology", `must be one of ${TOPOLOGIES.join(", ")}`);
  checkPart("compute", compute);
  checkPart("switches", switches);
  checkPart("power_shelves", powerShelves);
}

function checkPart(field: string, { count, slotIds, watts }: ProfilePart): void {
  if (!Number.isInteger(count) || count < 0 || count > MOST_DEVICES)
    throw refusal(`${field}.count`, `must be a whole number from 0 to ${MOST_DEVICES}`);
  if (slotIds.length > MOST_DEVICES) throw refusal(`${field}.slot_ids`, `at most ${MOST_DEVICES}`);
  if (watts !== null && (watts < 0 || watts > MOST_WATTS))
    throw refusal(`${field}.watts`, `must be from 0 to ${MOST_WATTS}`);
}
