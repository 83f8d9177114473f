import type { BmcTarget } from "./bmc-target.ts";
import type { CallContext } from "./call.ts";

/** One installation of an image on one machine. The same order given again is the same installation. */
export interface InstallOrder {
  /** Where the installation medium lies. */
  readonly location: string;
  /** Empty for none. */
  readonly cloudInitRef: string;
  /** Single use: the installed system shows it, which proves that it came from this very order. */
  readonly token: string;
  /** iso: a medium that installs by itself once it is booted, which is what is meant where nothing is said. disk: written as it is. */
  readonly kind?: "iso" | "disk";
  /** `sha256:…` of what lies at the location. */
  readonly digest?: string;
  /** A second medium, from which the installer learns what to install. Absent: it is told by the address of the first. */
  readonly seed?: { readonly url: string };
  /** What the installer is to know is in the image that lies at the location, which is a secret then. */
  readonly hasSeedInside?: true;
  /** What the installed system is to show of itself, for images that are written as they are. */
  readonly stamp?: { readonly path: string; readonly text: string };
}

/** What can be seen of an installation from outside. Whether it succeeded only the installed system can tell. */
export interface ImagingProgress {
  /** The medium of this order is in the drive. */
  readonly inserted: boolean;
  /** The next boot will be from it: a boot uses that up, unless the BMC keeps it for every boot. */
  readonly armed: boolean;
}

/**
 * Installing an operating system from outside: the medium, the boot order and the restart.
 *
 * Calls are idempotent per order: preparing twice leaves one medium in, and cleaning up what is not there succeeds. Preparing
 * and starting are apart, so that whoever died between the two can see which of them is left to do.
 *
 * @throws StepFailure "retry" when the BMC cannot be reached or is busy, "fail" when it refuses for good.
 */
export interface Imaging {
  /** Absent: it inserts no second medium. Refuses, before anything is done, a device that cannot hold one. */
  readonly checkSeed?: (target: BmcTarget, call: CallContext) => Promise<void>;
  /** Puts the medium in, in place of whatever is in, and makes it the next boot source. */
  prepare(target: BmcTarget, order: InstallOrder, call: CallContext): Promise<void>;
  /** Restarts the machine into the medium, at once: the disk is about to be overwritten anyway. */
  start(target: BmcTarget, order: InstallOrder, call: CallContext): Promise<void>;
  readProgress(target: BmcTarget, order: InstallOrder, call: CallContext): Promise<ImagingProgress>;
  /**
   * Ejects the medium of this order and clears the boot override. Another order's medium stays. The medium is ejected whether or not
   * the override can be cleared: with the drive empty the machine does not install again. Returns what stays, for people; undefined
   * when nothing does.
   */
  cleanUp(target: BmcTarget, order: InstallOrder, call: CallContext): Promise<string | undefined>;
}
