import { AppError, StepFailure } from "../kernel/errors.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import { targetOfKubeconfig } from "../providers/kubernetes/kubeconfig.ts";
import type { Runbooks } from "../runs/runbooks.ts";
import { bmcTargetOf, clusterNameOf, type StepTargets, sshTargetOf } from "../runs/targets.ts";
import { getKubeconfig, listClusters } from "../store/clusters.ts";
import type { Database } from "../store/database.ts";
import { listImages } from "../store/images.ts";
import { getMachineBmcCredentials, getMachineSshCredentials } from "../store/machine-credentials.ts";
import type { SecretStore } from "../store/secrets.ts";

export interface TargetWiring {
  readonly db: Database;
  readonly secrets: SecretStore;
  readonly runbooks: Runbooks;
}

const missing = (message: string): StepFailure => new StepFailure("fail", message);

/** Where the things are that the steps of a machine's runs work with, looked up when they are asked for. */
export function stepTargets({ db, secrets, runbooks }: TargetWiring, machine: Machine): StepTargets {
  return {
    async bmc() {
      const [found] = await getMachineBmcCredentials(db, secrets, [machine.id]);
      if (found === undefined || found instanceof AppError)
        throw missing(found?.message ?? "there are no BMC credentials");
      return bmcTargetOf(machine, found);
    },
    async ssh() {
      const [found] = await getMachineSshCredentials(db, secrets, [machine.id]);
      if (found === undefined || found instanceof AppError)
        throw missing(found?.message ?? "there are no SSH credentials");
      return sshTargetOf(machine, { username: found.username, credentials: { privateKey: found.privateKey } });
    },
    async cluster(ref) {
      const name = clusterNameOf(ref, machine);
      const [cluster] = await listClusters(db, { names: [name] });
      const kubeconfig = cluster && (await getKubeconfig(db, secrets, name));
      if (!cluster || kubeconfig === undefined)
        throw missing(`there is no cluster ${name}; create it with millwright cluster create`);
      return targetOfKubeconfig(name, kubeconfig);
    },
    async image(ref) {
      const [image] = await listImages(db, { names: [ref] });
      if (!image) throw missing(`there is no image ${ref}; create it with millwright image create`);
      return { ref: image.name, digest: image.digest, location: image.location };
    },
    async script(ref) {
      const found = runbooks.find(ref);
      if (!found) throw missing(`there is no script ${ref}; known: ${runbooks.refs.join(", ")}`);
      return found;
    },
  };
}
