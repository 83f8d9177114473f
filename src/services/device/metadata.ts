import { AppError } from "../../kernel/errors.ts";
import type { Metadata, VersionedMetadata } from "../../store/device/device.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { type DeviceName, findDevice, nameDevice } from "./device.ts";

export type { Metadata } from "../../store/device/device.ts";

const NAME = { least: 2, most: 256 } as const;
const LONGEST_DESCRIPTION = 1_024;
const MOST_LABELS = 10;
const LONGEST_LABEL = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the rule is ASCII, which has them
const ASCII = /^[\x00-\x7f]*$/;

/** An empty name is allowed only where one is given by default. */
export function checkMetadata(
  metadata: Metadata,
  options: {
    /** Where in the request it stands; empty: at its top. */
    readonly field: string;
    readonly nameMayBeEmpty?: boolean;
  },
): Metadata {
  const { name, description, labels } = metadata;
  const refuse = (part: string, rule: string) => {
    const field = options.field === "" ? part : `${options.field}.${part}`;
    throw new AppError("invalid_argument", `${field}: ${rule}`, { field });
  };
  const lengthIsRight = name.length >= NAME.least && name.length <= NAME.most;
  if (!(name === "" && options.nameMayBeEmpty) && (!lengthIsRight || !ASCII.test(name))) {
    refuse("name", `must have ${NAME.least} to ${NAME.most} ASCII characters`);
  }
  if (description.length > LONGEST_DESCRIPTION) refuse("description", `at most ${LONGEST_DESCRIPTION} characters`);
  if (Object.keys(labels).length > MOST_LABELS) refuse("labels", `at most ${MOST_LABELS} labels`);
  for (const [key, value] of Object.entries(labels)) {
    if (key === "" || key.length > LONGEST_LABEL || !ASCII.test(key))
      refuse("labels", `keys must have 1 to ${LONGEST_LABEL} ASCII characters`);
    if (value !== null && value.length > LONGEST_LABEL)
      refuse("labels", `the value of ${JSON.stringify(key)} has more than ${LONGEST_LABEL} characters`);
  }
  return metadata;
}

export interface UpdateMetadata {
  readonly device: DeviceName;
  /** As `metadataVersionOf` writes it; undefined replaces whatever there is. */
  readonly ifVersionMatch: string | undefined;
  readonly metadata: Metadata;
}

/** Replaces name, description and labels, if the version is still the one that the caller saw. */
export async function updateMetadata(deps: ServiceDeps, caller: Caller, input: UpdateMetadata): Promise<void> {
  const named = nameDevice(deps, input.device);
  const { key, store, traits } = named;
  const { metadataOf } = traits;
  if (!metadataOf) throw new AppError("unsupported", `a ${traits.noun} has no metadata`);
  const { name, description, labels } = checkMetadata(input.metadata, { field: "metadata" });
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [key]);
    const before = metadataOf(await findDevice(tx, named));
    const current = metadataVersionOf(before);
    if (input.ifVersionMatch !== undefined && input.ifVersionMatch !== current) {
      const message = `if_version_match: the metadata of ${key.id} is at ${current}, not ${input.ifVersionMatch}; read it again`;
      throw new AppError("conflict", message, { field: "if_version_match" });
    }
    await recordChange(tx, store, {
      id: key.id,
      type: "metadata_changed",
      ...doneBy(caller),
      // No guard and no handler reads what people call a device.
      touchesBasis: false,
      data: { name, description, labels },
      set: {
        name,
        description,
        labels,
        metadata_version: before.metadataVersion + 1,
        metadata_changed_at: nowOf(deps),
      },
    });
  });
}

export const metadataVersionOf = ({ metadataVersion, metadataChangedAt }: VersionedMetadata): string =>
  versionText(metadataVersion, metadataChangedAt);

/** Versions on the wire: their number and the time since when they hold, in microseconds. */
export const versionText = (number: number, since: Date): string => `V${number}-T${since.getTime() * 1_000}`;
