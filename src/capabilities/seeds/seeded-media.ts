import type { SeedFile } from "./seed.ts";

/** What an image was when an installation began. Whoever finds another one there does not mix the two. */
export type IsoSeen = {
  readonly bytes: number;
  /** What its server says of this version; empty: nothing. */
  readonly version: string;
  /** Of its directories, as far as they were read. */
  readonly digest: string;
};

export interface SeededOrder {
  readonly location: string;
  readonly seen: IsoSeen;
  /** `sha256:…` of what lies at the location. */
  readonly digest: string;
  readonly files: readonly SeedFile[];
  /** The time that the files show. */
  readonly at: Date;
}

export interface SeededMedium {
  readonly bytes: number;
  /**
   * Both ends are inclusive. Nothing is kept but a few pieces. Who reads all of it in one go is not given its end if the image has another
   * digest than it should: a BMC that downloads it then has no medium.
   */
  read(range: { readonly start: number; readonly end: number }, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/**
 * Images with a seed in them, for BMCs with one virtual drive. They are nowhere kept: their bytes are those of the image, read where it
 * lies, and a few of ours.
 *
 * @throws StepFailure "image_unfit" when no seed can be written into it, or it is not what was seen; DeviceFailure when it cannot be read.
 */
export interface SeededMedia {
  examine(location: string, signal: AbortSignal): Promise<IsoSeen>;
  open(order: SeededOrder): Promise<SeededMedium>;
}
