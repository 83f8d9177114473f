import { type SeedFormat, whyDocumentUnfit } from "../../capabilities/seeds/seed.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { Step } from "../../runs/model/plan/plan.ts";
import type { RunDeps } from "../run/deps.ts";
import type { ImageMeans, StepNeeds } from "../run/start-checks.ts";

interface SeededRun {
  readonly machine: Machine;
  readonly needs: ReadonlyMap<Step, StepNeeds>;
}

/**
 * Why the installer of a step would not find its seed, or could not read it. Whether the BMC has a second drive only the BMC can tell: see
 * `findMediaConflicts`.
 */
export function findSeedConflicts(
  deps: Pick<RunDeps, "seedsAt" | "takesSeeds">,
  { machine, needs }: SeededRun,
  documents: ReadonlyMap<string, string>,
): AppError[] {
  return [...needs].flatMap(([step, { images }]) =>
    images.flatMap((image) => {
      const { seed } = image;
      if (seed === null) return [];
      return [...wayConflicts(deps, machine, step, image), ...documentConflicts(step, image.name, seed, documents)];
    }),
  );
}

export function checkSeeds(...given: Parameters<typeof findSeedConflicts>): void {
  const [conflict] = findSeedConflicts(...given);
  if (conflict) throw conflict;
}

/** The images whose installers read their seed from a medium, each once. */
function imagesOnMedia({ needs }: Pick<SeededRun, "needs">): ImageMeans[] {
  const images = [...needs.values()].flatMap((each) => each.images);
  const onMedia = images.filter(({ kind, seed }) => kind === "iso" && seed !== null);
  return [...new Map(onMedia.map((image) => [image.name, image])).values()];
}

type MediaDeps = Pick<RunDeps, "findNoSeedDrive" | "findUnfitImage">;

/**
 * Asks the BMC for the drives that the media need, and the server of an image whether a seed can be written into it. Who does not answer now
 * may when the step begins, which asks again.
 */
export async function findMediaConflicts(deps: MediaDeps, run: SeededRun): Promise<AppError[]> {
  const images = imagesOnMedia(run);
  if (images.length === 0) return [];
  const noDrive = images.some(({ seedOn }) => seedOn !== "image")
    ? await deps.findNoSeedDrive?.(run.machine)
    : undefined;
  const conflicts: AppError[] = [];
  for (const { location, seedOn } of images) {
    if (seedOn !== "image" && noDrive === undefined) continue;
    const why = seedOn === "image" || seedOn === "either" ? await deps.findUnfitImage?.(location) : noDrive;
    if (why !== undefined) conflicts.push(new AppError("failed_precondition", why, { next: "millwright image list" }));
  }
  return conflicts;
}

/** No refusal to a caller: devices are asked outside of the transaction that starts the run. */
class UntriedMedia extends AppError {
  readonly run: SeededRun;
  constructor(run: SeededRun) {
    super("conflict", `machine ${run.machine.id}: what its media need is to be asked for first`);
    this.run = run;
  }
}

/** Within `startOnTriedMedia`. */
export function checkMediaTried(deps: MediaDeps, run: SeededRun, areTried: boolean): void {
  if (areTried || (deps.findNoSeedDrive === undefined && deps.findUnfitImage === undefined)) return;
  if (imagesOnMedia(run).length > 0) throw new UntriedMedia(run);
}

/** A start that needs media is put off until its BMC was asked for them, outside of every transaction. */
export async function startOnTriedMedia<T>(deps: MediaDeps, start: (areTried: boolean) => Promise<T>): Promise<T> {
  try {
    return await start(false);
  } catch (error) {
    if (!(error instanceof UntriedMedia)) throw error;
    const [conflict] = await findMediaConflicts(deps, error.run);
    if (conflict) throw conflict;
    return start(true);
  }
}

function wayConflicts(
  { seedsAt, takesSeeds }: Pick<RunDeps, "seedsAt" | "takesSeeds">,
  { spec }: Machine,
  step: Step,
  { name, kind }: ImageMeans,
): AppError[] {
  if (kind !== "iso") return [];
  if (!takesSeeds(spec))
    return [
      new AppError(
        "unsupported",
        `step ${step.name} installs image ${name}, which reads its seed from a medium that this server makes, and provider ${spec.provider} inserts none: choose an image without seed`,
        { field: "plan_id", next: "millwright image list" },
      ),
    ];
  if (seedsAt !== null) return [];
  return [
    new AppError(
      "failed_precondition",
      `step ${step.name} installs image ${name}, whose seed the BMC fetches from this server, and the server does not know where BMCs reach it: set bmc.public_url and restart the server`,
      { field: "plan_id", next: "millwright config check" },
    ),
  ];
}

function documentConflicts(
  step: Step,
  image: string,
  seed: SeedFormat,
  documents: ReadonlyMap<string, string>,
): AppError[] {
  const ref = String(step.payload.cloud_init_ref ?? "");
  const refuse = (why: string) =>
    new AppError("invalid_argument", `plan_id: step ${step.name}: ${why}`, {
      field: "plan_id",
      next: "millwright cloud-init list",
    });
  if (ref === "")
    return seed === "kickstart"
      ? [refuse(`image ${image} reads a kickstart file, and cloud_init_ref names none: name a document`)]
      : [];
  const content = documents.get(ref);
  const why = content === undefined ? undefined : whyDocumentUnfit(seed, content);
  return why === undefined ? [] : [refuse(`document ${ref} ${why}`)];
}
