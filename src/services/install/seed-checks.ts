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
 * `findDriveConflict`.
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

/** Whether a step inserts a seed as a second medium. */
export const insertsSeed = ({ needs }: Pick<SeededRun, "needs">): boolean =>
  [...needs.values()].some(({ images }) => images.some(({ kind, seed }) => kind === "iso" && seed !== null));

/** Asks the BMC. One that does not answer now may when the step begins, which asks again. */
export async function findDriveConflict(
  { findNoSeedDrive }: Pick<RunDeps, "findNoSeedDrive">,
  machine: Machine,
): Promise<AppError | undefined> {
  const why = await findNoSeedDrive?.(machine);
  return why === undefined
    ? undefined
    : new AppError("failed_precondition", why, { field: "plan_id", next: "millwright image list" });
}

/** No refusal to a caller: the BMC is asked outside of the transaction that starts the run. */
export class UntriedDrive extends AppError {
  readonly machine: Machine;
  constructor(machine: Machine) {
    super("conflict", `machine ${machine.id}: its BMC is to be asked for a second drive first`);
    this.machine = machine;
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
        `step ${step.name} installs image ${name}, which reads its seed from a second medium, and provider ${spec.provider} inserts none: choose an image without seed`,
        { field: "plan_id", next: "millwright image list" },
      ),
    ];
  if (seedsAt !== null) return [];
  return [
    new AppError(
      "failed_precondition",
      `step ${step.name} installs image ${name}, whose seed the BMC fetches from this server, and the server does not know where BMCs reach it: set install.public_url and restart the server`,
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
