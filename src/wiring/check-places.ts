import type { ClusterTarget } from "../capabilities/cluster-target.ts";
import type { CheckPlaces, Place } from "../engine/conditions/machine-check.ts";
import { AppError, causeOf, StepFailure } from "../kernel/errors.ts";
import { clustersToCheck, type Machine } from "../lifecycles/machine/machine.ts";
import { ENDPOINT_NAMES, type Endpoint, type StepTargets, sshTargetOf } from "../runs/model/targets.ts";
import { listMachineAlerts } from "../store/machine/alerts.ts";
import type { Database } from "../store/postgres/database.ts";
import { isFake, withFakeEndpoints } from "./fake-machines.ts";
import type { MachineHardware } from "./machine-hardware.ts";
import { isUnusable } from "./step-targets.ts";

export interface CheckPlacesWiring {
  readonly db: Database;
  readonly hardware: Pick<MachineHardware, "providerOf">;
  /** Looks up for many machines at once what they ask for at the same time. */
  readonly targetsOf: (machine: Machine) => StepTargets;
}

const noEndpoint = (at: Endpoint) => {
  const message = `the machine has no ${ENDPOINT_NAMES[at]} endpoint`;
  return { is: "nowhere", reason: "NoEndpoint", message, cause: { code: "endpoint_missing", facts: { at } } } as const;
};
const NO_SSH = noEndpoint("ssh");
const NO_BMC = noEndpoint("bmc");

/** Where the machines of a batch are to be checked: a few queries, however many there are. */
export function wireCheckPlaces({ db, hardware, targetsOf }: CheckPlacesWiring) {
  return async (machines: readonly Machine[]): Promise<CheckPlaces[]> => {
    const alertsOf = listMachineAlerts(
      db,
      machines.map(({ id }) => id),
    );
    return Promise.all(
      machines.map(withFakeEndpoints).map(async (machine): Promise<CheckPlaces> => {
        const targets = targetsOf(machine);
        const { spec } = machine;
        const [ssh, bmc, clusters, alerts] = await Promise.all([
          spec.ssh === null ? NO_SSH : placeOf("NoCredentials", () => sshTarget(machine, targets)),
          spec.bmc === null ? NO_BMC : placeOf("NoCredentials", () => targets.bmc()),
          Promise.all(clustersToCheck(machine).map((name) => clusterPlace(name, targets))),
          alertsOf.then((of) => of(machine.id)),
        ]);
        return {
          provider: hardware.providerOf(spec) ?? { name: spec.provider, can: {} },
          ssh,
          bmc,
          clusters,
          alerts,
        };
      }),
    );
  };
}

/** Nobody signs in to the machine itself, so that credentials are needed only where jump hosts stand before it. */
async function sshTarget(machine: Machine, targets: StepTargets) {
  if (isFake(machine) || (machine.spec.ssh?.jumpHosts.length ?? 0) > 0) return targets.ssh();
  return sshTargetOf(machine, { username: "", credentials: { privateKey: "" } });
}

/** A kubeconfig that cannot be used is as good as none; but there is a cluster, and the machine may serve in it. */
async function clusterPlace(name: string, targets: StepTargets): Promise<Place<ClusterTarget>> {
  const place = await placeOf("NoCluster", () =>
    targets.cluster(name).catch((error: unknown) => {
      if (!isUnusable(error)) throw error;
      const message = `cluster ${name}: its kubeconfig cannot be used: ${error.message}`;
      const cause = { code: "credentials_missing", facts: { at: "cluster", name } } as const;
      return { is: "missed", reason: "KubeconfigUnusable", message, cause } as const;
    }),
  );
  return place.is === "at" && "is" in place.target ? place.target : (place as Place<ClusterTarget>);
}

/** What is not on record is not checked, and what cannot be read is not known; every other error is a fault of ours and fails the batch. */
async function placeOf<T>(reason: string, find: () => Promise<T>): Promise<Place<T>> {
  try {
    return { is: "at", target: await find() };
  } catch (error) {
    if (error instanceof StepFailure) return { is: "nowhere", reason, message: error.message, cause: causeOf(error) };
    if (error instanceof AppError && error.kind !== "unavailable") return { is: "unknown" };
    throw error;
  }
}
