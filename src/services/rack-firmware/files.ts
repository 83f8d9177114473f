import { setTimeout as pause } from "node:timers/promises";
import type { Artifacts, KeptArtifact } from "../../capabilities/rack/artifacts.ts";
import { AppError } from "../../kernel/errors.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { Signer } from "../../store/access/secrets.ts";
import type { Database } from "../../store/postgres/database.ts";
import { listArtifactDigests, listAvailableDigests } from "../../store/rack-firmware/rack-firmware.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";

/**
 * The addresses under which BMCs fetch firmware. BMCs have no credentials, so the address is the credential: it is signed, names one
 * file, and expires. Without the key of the site nobody can make one, nor change the file or the time in it.
 */
const PURPOSES = { shared: "firmware file", own: "firmware file at bmc.listen" } as const;
/** Whether BMCs have a listener of their own. An address for the one is none for the other. */
export type FileListener = keyof typeof PURPOSES;
export const FIRMWARE_FILES = "/firmware/files";

const signedText = (hex: string, expires: string): string => `${hex} ${expires}`;

export interface FileAddress {
  /** Of the server, as BMCs reach it. */
  readonly server: string;
  readonly digest: string;
  readonly name: string;
  readonly now: Date;
  readonly validFor: Duration;
  /** Absent: the one that all share. */
  readonly listener?: FileListener;
}

export function fileAddress(
  signer: Signer,
  { server, digest, name, now, validFor, listener = "shared" }: FileAddress,
): string {
  const hex = digest.slice("sha256:".length);
  const expires = Math.ceil((now.getTime() + validFor) / 1_000).toString(36);
  const signature = signer.sign(PURPOSES[listener], signedText(hex, expires));
  return `${server}${FIRMWARE_FILES}/${hex}/${expires}/${signature}/${encodeURIComponent(name)}`;
}

export interface FileRequest {
  readonly hex: string;
  readonly expires: string;
  readonly signature: string;
}

/** The file of an address. Whatever is wrong with the address, the answer is the same: who asks learns nothing by it. */
export async function readFirmwareFile(
  deps: ServiceDeps,
  { hex, expires, signature }: FileRequest,
  /** Whose addresses are good here. */
  listeners: readonly FileListener[] = ["shared"],
): Promise<KeptArtifact> {
  const isOurs = /^[0-9a-f]{64}$/.test(hex) && /^[0-9a-z]{1,11}$/.test(expires);
  const isSigned = (listener: FileListener) =>
    deps.secrets.isSigned(PURPOSES[listener], signedText(hex, expires), signature);
  const isValid = isOurs && listeners.some(isSigned);
  const isInTime = isValid && Number.parseInt(expires, 36) * 1_000 > nowOf(deps).getTime();
  const file = isInTime ? await findOrFetch(deps, `sha256:${hex}`) : undefined;
  if (!file) throw new AppError("not_found", "There is no such file");
  return file;
}

/** A BMC does not wait for long, nor does its order find its way to the replica that has the file. */
const LONGEST_WAIT = seconds(100);

async function findOrFetch(
  { artifacts, missingFiles }: ServiceDeps,
  digest: string,
): Promise<KeptArtifact | undefined> {
  const prepared = await missingFiles?.prepare(digest);
  if (prepared !== undefined && prepared !== "here") {
    const wait = new AbortController();
    const late = pause(LONGEST_WAIT, undefined, { signal: wait.signal, ref: false }).catch(() => undefined);
    await Promise.race([prepared.ended, late]);
    wait.abort();
  }
  return artifacts?.find(digest);
}

/** Available records of which a file is not here: another replica has downloaded it to a directory of its own, or somebody removed it. */
export async function findMissingFiles({ db, artifacts }: ServiceDeps): Promise<readonly string[]> {
  if (!artifacts) return [];
  const missing: string[] = [];
  for (const { id, digest } of await listAvailableDigests(db))
    if ((await artifacts.find(digest)) === undefined) missing.push(id);
  return [...new Set(missing)];
}

/** Removes the files that no record names any more. */
export async function sweepArtifacts(db: Database, artifacts: Artifacts): Promise<void> {
  await artifacts.sweep(await listArtifactDigests(db));
}
