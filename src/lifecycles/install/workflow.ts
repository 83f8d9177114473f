import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Architecture, BootMode } from "./install.ts";

export const OS_FAMILIES = ["linux", "windows", "bsd"] as const;
export const WORKFLOW_BOOT_MODES = ["bios", "uefi", "any"] as const;
export const WORKFLOW_NEXT_STATES = ["installed", "active"] as const;
export const STEP_TYPES = ["boot", "script", "reboot", "wait", "cloud_init", "disk_scan", "partition"] as const;
export const ON_FAILURE = ["fail", "retry", "skip", "rollback"] as const;

/** What the boot script does, by the method. Locations are of our own file server (`/files/…`) or http(s) elsewhere. */
export type WorkflowBoot =
  | {
      readonly method: "kernel";
      readonly kernel_url: string;
      readonly initrd_url?: string | undefined;
      readonly cmdline: string;
      /** It is the environment of `millwright netboot environment`, which carries out steps. */
      readonly environment?: boolean | undefined;
    }
  | { readonly method: "sanboot"; readonly iso_url: string }
  | { readonly method: "chain"; readonly chain_url: string }
  | {
      readonly method: "image";
      /** The environment that writes the image. */
      readonly kernel_url: string;
      readonly initrd_url: string;
      readonly cmdline: string;
      readonly image_url: string;
      readonly image_digest: string;
      /** Empty: the first disk. */
      readonly target_device: string;
    }
  | {
      readonly method: "clone";
      /** The environment that writes the copy. */
      readonly kernel_url: string;
      readonly initrd_url: string;
      readonly cmdline: string;
      /** The disk of another machine, as a server of ranges offers it. */
      readonly source_url: string;
      /** Absent: what arrives is read back from the disk, and compared with nothing else. */
      readonly source_digest?: string | undefined;
      /** Empty: the first disk. */
      readonly target_device: string;
    };

/**
 * A stage of the installation. Our environment carries it out, at most `max_retries` times more than once and each time for at most
 * `timeout_seconds`; then `on_failure` decides. `next_state`: when it is done, the installation is complete.
 */
export interface WorkflowStep {
  readonly sequence: number;
  readonly name: string;
  readonly type: (typeof STEP_TYPES)[number];
  readonly config: JsonObject;
  readonly timeout_seconds: number;
  readonly on_failure: (typeof ON_FAILURE)[number];
  readonly max_retries: number;
  readonly retry_delay_seconds: number;
  readonly next_state: (typeof WORKFLOW_NEXT_STATES)[number] | null;
}

/** What is installed over the network, and where a complete install leads. */
export interface Workflow {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly osFamily: (typeof OS_FAMILIES)[number];
  readonly architecture: Architecture;
  readonly bootMode: (typeof WORKFLOW_BOOT_MODES)[number];
  readonly boot: WorkflowBoot;
  readonly steps: readonly WorkflowStep[];
  readonly nextState: (typeof WORKFLOW_NEXT_STATES)[number];
}

/** Who boots this is our own environment: it carries out steps and reports them. */
export const isOurEnvironment = (boot: WorkflowBoot): boolean =>
  boot.method === "image" || boot.method === "clone" || (boot.method === "kernel" && boot.environment === true);

/** Those that the environment carries out; of workflows that were stored when nobody did so, none. */
export const stepsToRun = ({ boot, steps }: Pick<Workflow, "boot" | "steps">): readonly WorkflowStep[] =>
  isOurEnvironment(boot) ? steps.toSorted((a, b) => a.sequence - b.sequence) : [];

/** arm64 and aarch64 are two names of one. */
export const isSameArchitecture = (a: Architecture, b: Architecture): boolean => (a === "x86_64") === (b === "x86_64");

/** Why a node cannot be installed with the workflow; undefined when it can. */
export function mismatch(
  workflow: Pick<Workflow, "architecture" | "bootMode" | "name">,
  node: { readonly arch: Architecture; readonly bootMode: BootMode },
): string | undefined {
  if (!isSameArchitecture(workflow.architecture, node.arch)) {
    return `workflow ${workflow.name} is for ${workflow.architecture}, and the node is ${node.arch}`;
  }
  if (workflow.bootMode !== "any" && workflow.bootMode !== node.bootMode) {
    return `workflow ${workflow.name} is for ${workflow.bootMode}, and the node boots with ${node.bootMode}`;
  }
}
