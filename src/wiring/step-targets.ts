import type { ClusterTarget } from "../capabilities/cluster-target.ts";
import type { SeededMedia } from "../capabilities/seeds/seeded-media.ts";
import { type Batcher, createBatcher } from "../kernel/batcher.ts";
import { AppError, StepFailure } from "../kernel/errors.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import { targetOfKubeconfig } from "../providers/kubernetes/kubeconfig.ts";
import { seedWriter } from "../providers/seeds/seed.ts";
import {
  bmcTargetOf,
  clusterNameOf,
  type Reference,
  requireEndpoint,
  type StepTargets,
  sshTargetOf,
} from "../runs/model/targets.ts";
import { SEED_MEDIUM, seedDirectory, seededImageName, seedKeyOf } from "../runs/seeds/seed-place.ts";
import type { Runbook, Runbooks } from "../runs/steps/scripts/runbooks.ts";
import { noCredentials } from "../store/access/no-credentials.ts";
import type { SecretStore } from "../store/access/secrets.ts";
import { getKubeconfigs } from "../store/catalog/clusters.ts";
import { imageTable } from "../store/catalog/images.ts";
import {
  getMachineBmcCredentials,
  getMachineSshCredentials,
  getSshKeyElsewhere,
} from "../store/machine/credentials.ts";
import type { Database } from "../store/postgres/database.ts";
import { findScripts, type ScriptVersion } from "../store/run/script-texts.ts";
import { fakeTargets, isFake } from "./fake-machines.ts";

export interface TargetWiring {
  readonly db: Database;
  readonly secrets: SecretStore;
  readonly runbooks: Runbooks;
  /** Where BMCs reach this server; null: nobody has said. */
  readonly seedsAt?: string | null;
  /** Where machines do; null, or absent: where their BMCs do. */
  readonly installersAt?: string | null;
  /** Absent: no image is served with a seed in it. */
  readonly seededMedia?: SeededMedia;
}

const missing = (what: Reference["kind"], name: string, message: string): StepFailure =>
  new StepFailure("reference_missing", message, { facts: { what, name } });

/**
 * Where the things are that the steps of a machine's runs work with, looked up when they are asked for: with one query for all
 * that ask at the same time.
 */
export function wireStepTargets({
  db,
  secrets,
  runbooks,
  seedsAt = null,
  installersAt = null,
  seededMedia,
}: TargetWiring): (machine: Machine) => StepTargets {
  const lookUp = <T>(run: (names: readonly string[]) => Promise<readonly T[]>) =>
    createBatcher<string, T>({ most: 500, atOnce: 2, run });
  // Of the machine as it was loaded, and so for the address that is then called.
  const signInBy = <T>(run: (machines: readonly Machine[]) => Promise<readonly T[]>) =>
    createBatcher<Machine, T>({ most: 500, atOnce: 2, run });
  const bmcCredentials = signInBy((machines) => getMachineBmcCredentials(db, secrets, machines));
  const sshCredentials = signInBy((machines) => getMachineSshCredentials(db, secrets, machines));
  const clusterOf = rememberingClusters();
  const clusters = lookUp(async (names) => {
    const kubeconfigs = await getKubeconfigs(db, secrets, [...new Set(names)]);
    const targets = new Map([...kubeconfigs].map(([name, kubeconfig]) => [name, clusterOf(name, kubeconfig)]));
    return names.map((name) => targets.get(name) ?? noCluster(name));
  });
  const images = lookUp(async (names) => {
    const found = new Map(
      (await imageTable.list(db, { names: [...new Set(names)] })).map((image) => [image.name, image]),
    );
    return names.map((name) => found.get(name));
  });
  const keptScripts = createBatcher<ScriptVersion, Runbook | undefined>({
    ...{ most: 500, atOnce: 2 },
    run: (versions) => findScripts(db, versions),
  });
  const targetsOf = (machine: Machine): StepTargets => ({
    bmc: once(async () => {
      requireEndpoint(machine, "bmc");
      const found = await bmcCredentials.submit(machine);
      if (found instanceof AppError) throw noCredentials(found, { at: "bmc" });
      return bmcTargetOf(machine, found);
    }),
    ssh: once(async () => {
      requireEndpoint(machine, "ssh");
      const found = await sshCredentials.submit(machine);
      if (found instanceof AppError) throw noCredentials(found, { at: "ssh" });
      return sshTargetOf(machine, { username: found.username, credentials: { privateKey: found.privateKey } });
    }),
    cluster: once(async (ref) => {
      const found = await clusters.submit(clusterNameOf(ref, machine));
      if (found instanceof Error) throw found;
      return found;
    }),
    async image(ref) {
      const image = await images.submit(ref);
      if (!image) throw missing("image", ref, `there is no image ${ref}; create it with millwright image create`);
      const { name, digest, location, kind, successProof, seed, seedOn } = image;
      const seeded = { ...(seed !== null && { seed }), ...(seedOn !== null && { seedOn }) };
      return { ref: name, digest, location, kind, proof: successProof, ...seeded };
    },
    seedUrl: (runId, token) => `${directoryFor(seedsAt, runId, token)}${SEED_MEDIUM}`,
    async seededImage({ runId, token, location, signal }) {
      const url = `${directoryFor(seedsAt, runId, token)}${seededImageName(location)}`;
      if (seededMedia === undefined) throw cannotServeSeeds();
      const iso = await seededMedia.examine(location, signal);
      const seen = { url, iso, ...(installersAt !== null && installersAt !== seedsAt && { reportsTo: installersAt }) };
      if (machine.spec.ssh === null) return { ...seen, signIn: null };
      const found = await getSshKeyElsewhere(db, secrets, machine.id);
      return { ...seen, signIn: found instanceof AppError ? null : seedWriter.signInOf(found) };
    },
    async script(ref, digest) {
      const kept = digest === undefined ? undefined : await findVersion(runbooks, keptScripts, { ref, digest });
      const now = runbooks.find(ref);
      const found = kept ?? now;
      if (!found) throw missing("script", ref, `there is no script ${ref}; known: ${runbooks.refs.join(", ")}`);
      return found.digest === now?.digest ? found : { ...found, isEarlier: true };
    },
  });
  return (machine) => (isFake(machine) ? fakeTargets(machine, targetsOf(machine)) : targetsOf(machine));
}

const cannotServeSeeds = (): StepFailure =>
  new StepFailure(
    "not_on_this_server",
    "this server does not know where BMCs reach it, so that they cannot fetch a seed: set bmc.public_url and restart the server",
    { facts: { what: "setting", name: "bmc.public_url" } },
  );

function directoryFor(seedsAt: string | null, runId: string, token: string): string {
  if (seedsAt === null) throw cannotServeSeeds();
  return seedDirectory(seedsAt, runId, seedKeyOf(token));
}

/** As it was when the run was started. What no replica has kept may be in the files all the same. */
async function findVersion(
  runbooks: Runbooks,
  keptScripts: Batcher<ScriptVersion, Runbook | undefined>,
  { ref, digest }: ScriptVersion,
): Promise<Runbook | undefined> {
  const known = runbooks.findVersion(ref, digest) ?? (await keptScripts.submit({ ref, digest }));
  if (known) {
    runbooks.remember(known);
    return known;
  }
  try {
    runbooks.refresh();
  } catch {
    return undefined; // the step then says which version is missing
  }
  return runbooks.findVersion(ref, digest);
}

/** A step that asks its machine three things in one pass is given the same answer: secrets are read and opened once. */
function once<T>(ask: (name: string) => Promise<T>): (name?: string) => Promise<T> {
  const asked = new Map<string, Promise<T>>();
  return (name = "") => {
    const answer = asked.get(name) ?? ask(name);
    asked.set(name, answer);
    return answer;
  };
}

const noCluster = (name: string): StepFailure =>
  missing("cluster", name, `there is no cluster ${name}; create it with millwright cluster create`);

/** Reading a kubeconfig takes longer than all else that steps ask for here, and nearly all of them ask for the same few. */
function rememberingClusters(): typeof readCluster {
  const known = new Map<
    string,
    { readonly kubeconfig: string | AppError; readonly target: ClusterTarget | AppError }
  >();
  return (name, kubeconfig) => {
    const last = known.get(name);
    if (last?.kubeconfig === kubeconfig) return last.target;
    const target = readCluster(name, kubeconfig);
    known.set(name, { kubeconfig, target });
    return target;
  };
}

/** What is on record can be read, and is no kubeconfig that leads anywhere, or was encrypted with a key that is gone. */
export const isUnusable = (error: unknown): error is AppError =>
  error instanceof AppError && (error.kind === "invalid_argument" || error.kind === "failed_precondition");

/** An error is an answer here: one that cannot be read spoils no other. */
function readCluster(name: string, kubeconfig: string | AppError): ClusterTarget | AppError {
  if (kubeconfig instanceof AppError) return kubeconfig;
  try {
    return targetOfKubeconfig(name, kubeconfig);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}
