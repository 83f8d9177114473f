import type { SeededMedium } from "../../capabilities/seeds/seeded-media.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import { isActive } from "../../runs/model/run.ts";
import { installerMark } from "../../runs/seeds/seed-place.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import { findInstallerRecord, listRuns } from "../../store/run/runs.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { findInstallation, type Installation, inputOf, notFound, type SeedRequest } from "./seeds.ts";

/** Of one installation at the same time: a BMC reads with one or two, and nobody else knows the way. */
const MOST_READERS = 8;
/** No installation takes longer than that. */
const LONGEST_READ_MS = 12 * 3_600_000;
/** A BMC that streams its medium asks for kilobytes at a time: what they are made of is read once for many. */
const KEPT_MS = 5_000;

export interface OpenedMedium {
  readonly bytes: number;
  readonly at: Date;
  /** May be called once. */
  read(range: { readonly start: number; readonly end: number }, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/**
 * The image of an installation with its seed in it, as its BMC reads it. It is there for as long as the installation is under way. Undefined
 * when the file that is asked for is another one.
 */
export async function openSeededMedium(
  deps: ServiceDeps,
  { readers, opened }: MediaInUse,
  request: SeedRequest & { readonly file: string },
): Promise<OpenedMedium | undefined> {
  const found = await findInstallation(deps, request);
  if (found === undefined) throw notFound();
  const { seed, step, run } = found;
  if (seed.inImage === undefined || new URL(seed.url).pathname.split("/").at(-1) !== request.file) return undefined;
  const { seedWriter, seededMedia } = deps;
  if (seedWriter === undefined || seededMedia === undefined) throw notFound();
  const medium = await keeping(opened, JSON.stringify([run.id, installerMark(found.token), request.place]), () =>
    refusing(deps, found, async () =>
      seededMedia.open({
        location: String(step.evidence?.location ?? ""),
        digest: String(step.evidence?.digest ?? ""),
        seen: seed.inImage?.iso ?? { bytes: 0, version: "", digest: "" },
        files: seedWriter.filesOf(await inputOf(deps, found, request)),
        at: run.createdAt,
      }),
    ),
  );
  return {
    bytes: medium.bytes,
    at: run.createdAt,
    read: (range, signal) => readWhole(deps, found, { medium, range, signal, readers }),
  };
}

/** Of this process. */
export interface MediaInUse {
  /** How many read the medium of each run. */
  readonly readers: Map<string, number>;
  /** Media that were opened a few seconds ago, and those that are about to be. */
  readonly opened: Map<string, Promise<SeededMedium>>;
}

export const noMediaInUse = (): MediaInUse => ({ readers: new Map(), opened: new Map() });

/** Who asks for what is about to be opened waits for that. What failed is asked for again by the next. */
function keeping(opened: MediaInUse["opened"], key: string, open: () => Promise<SeededMedium>): Promise<SeededMedium> {
  const known = opened.get(key);
  if (known !== undefined) return known;
  const opening = open();
  opened.set(key, opening);
  const forget = () => opened.delete(key);
  opening.then(() => setTimeout(forget, KEPT_MS).unref(), forget);
  return opening;
}

interface Reading {
  readonly medium: SeededMedium;
  readonly range: { readonly start: number; readonly end: number };
  readonly signal: AbortSignal;
  readonly readers: MediaInUse["readers"];
}

/** Refused before the answer has begun. Who left before that, or before the first byte, does not count as a reader. */
function readWhole(deps: ServiceDeps, found: Installation, { medium, range, signal, readers }: Reading) {
  signal.throwIfAborted();
  const { id } = found.run;
  const now = readers.get(id) ?? 0;
  if (now >= MOST_READERS) throw new AppError("exhausted", `the medium of run ${id} is read by ${now} already`);
  readers.set(id, now + 1);
  const over = new AbortController();
  let isReleased = false;
  const release = () => {
    if (isReleased) return;
    isReleased = true;
    clearTimeout(longest);
    signal.removeEventListener("abort", release);
    over.abort(signal.reason);
    const left = (readers.get(id) ?? 1) - 1;
    if (left === 0) readers.delete(id);
    else readers.set(id, left);
  };
  const longest = setTimeout(release, LONGEST_READ_MS).unref();
  signal.addEventListener("abort", release, { once: true });
  return (async function* () {
    try {
      yield* medium.read(range, over.signal);
    } catch (error) {
      await noteRefusal(deps, found, error);
      throw error;
    } finally {
      release();
    }
  })();
}

async function refusing<T>(deps: ServiceDeps, found: Installation, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    await noteRefusal(deps, found, error);
    if (error instanceof StepFailure) throw new AppError("unavailable", error.message);
    throw error;
  }
}

/**
 * An image that is another one now, or not what its digest says, ends the installation: the run is told why, once. A server that does not
 * answer may answer the next request.
 */
async function noteRefusal(deps: ServiceDeps, { run: { id }, step, token }: Installation, error: unknown) {
  if (!(error instanceof StepFailure) || error.code !== "image_unfit") return;
  const order = installerMark(token);
  const why = error.message;
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "run", id }]);
    const [run] = await listRuns(tx, { ids: [id] });
    const known = await findInstallerRecord(tx, id);
    if (!run || !isActive(run.phase) || known.refused?.order === order) return;
    await recordChange(tx, storeOf(deps.stores, "run"), {
      id,
      type: "medium_refused",
      actor: "server",
      reason: why,
      data: { step: step.name },
      set: { installer_seen: { ...known, refused: { order, why, at: nowOf(deps).toISOString() } } },
    });
    await work.wake(tx, [{ kind: "run", id }]);
  });
}
