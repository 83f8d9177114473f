import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { failureOf } from "../../capabilities/device-failure.ts";
import type { Imaging } from "../../capabilities/imaging.ts";
import type { SeedFormat } from "../../capabilities/seeds/seed.ts";
import type { Image, SeededImage, StepTargets } from "../model/targets.ts";

/** How the installer of one installation gets to know what to install. Noted before anything is done. */
export type SeedEvidence = {
  readonly format: SeedFormat;
  /** Where the BMC fetches it: a medium of its own, or the image with the seed in it. Empty where the machine itself fetches it. */
  readonly url: string;
  /** Of an image with the seed in it: what its bytes are made of. They are the same from the first to the last. */
  readonly inImage?: Omit<SeededImage, "url"> & { readonly serial: string };
};

interface Choosing {
  readonly imaging: Imaging | undefined;
  readonly targets: StepTargets;
  readonly call: CallContext;
  readonly runId: string;
  readonly token: string;
  /** That the machine is on record with. */
  readonly serial: string;
}

/** By what the image's installer looks for, and by the drives that the BMC has. */
export async function chooseSeed(image: Image, choosing: Choosing): Promise<SeedEvidence | undefined> {
  const { targets, call, runId, token, serial } = choosing;
  const { seed: format, kind = "iso", location } = image;
  if (format === undefined) return undefined;
  if (kind !== "iso") return { format, url: "" };
  if (await goesOnMedium(image, choosing, await targets.bmc())) return { format, url: targets.seedUrl(runId, token) };
  const { url, ...inImage } = await targets.seededImage({ runId, token, location, signal: call.signal });
  return { format, url, inImage: { ...inImage, serial } };
}

async function goesOnMedium({ seedOn }: Image, { imaging, call }: Choosing, bmc: BmcTarget): Promise<boolean> {
  if (seedOn === "image") return false;
  const failure = await failureOf(async () => imaging?.checkSeed?.(bmc, call));
  if (failure === undefined) return true;
  if (seedOn === "either" && failure.code === "unsupported") return false;
  throw failure;
}
