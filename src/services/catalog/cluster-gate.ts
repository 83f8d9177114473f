import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { CLUSTER_RIGHTS, type ClusterReport, type ClusterRight } from "../../capabilities/clusters/access.ts";
import { DeviceFailure, isSilence } from "../../capabilities/device-failure.ts";
import { AppError, messageOf, StepFailure } from "../../kernel/errors.ts";

/** How kubeconfigs are read, and tried before anything depends on them. */
export interface ClusterGate {
  /** @throws AppError invalid_argument that names the member of the file, never its contents. */
  read(name: string, kubeconfig: string): ClusterTarget;
  /** @throws StepFailure as the capability does. */
  probe(target: ClusterTarget): Promise<ClusterReport>;
}

/** What came of trying a cluster. */
export type ClusterVerdict =
  | { readonly is: "open"; readonly missing: readonly ClusterRight[] }
  /** It does not let us in, is another one, or its kubeconfig cannot be used: waiting does not help. */
  | { readonly is: "shut"; readonly message: string }
  /** It does not answer, or not now: it may by the time that it is needed. */
  | { readonly is: "silent"; readonly message: string };

/** Errors of our own, such as a database that is away, are no verdict. */
export async function judgeCluster(probe: () => Promise<ClusterReport>): Promise<ClusterVerdict> {
  try {
    return { is: "open", missing: (await probe()).missing };
  } catch (error) {
    if (isSilence(error)) return { is: "silent", message: error.message };
    const isShut = error instanceof DeviceFailure || error instanceof StepFailure || isUnusable(error);
    if (isShut) return { is: "shut", message: messageOf(error) };
    throw error;
  }
}

const isUnusable = (error: unknown): boolean =>
  error instanceof AppError && (error.kind === "invalid_argument" || error.kind === "failed_precondition");

export const nameRights = (rights: readonly ClusterRight[]): string =>
  rights.map((right) => CLUSTER_RIGHTS[right]).join("; ");

export const givesKubeconfig = (name: string): string => `millwright cluster update ${name} --kubeconfig <file>`;
