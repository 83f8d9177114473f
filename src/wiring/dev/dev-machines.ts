import { z } from "zod";
import { AppError } from "../../kernel/errors.ts";
import type { Caller } from "../../services/call/caller.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { createCluster } from "../../services/catalog/clusters.ts";
import { type CreateImage, createImage, deleteImage } from "../../services/catalog/images.ts";
import { setMachineCredentials } from "../../services/machine/credentials.ts";
import { getMachine, registerMachine } from "../../services/machine/machines.ts";
import { imageTable } from "../../store/catalog/images.ts";

const machinesSchema = z.array(
  z.object({
    machine_id: z.string(),
    serial: z.string(),
    mac_addresses: z.array(z.string()),
    rack: z.string(),
    slot: z.coerce.string(),
    bmc_endpoint: z.string(),
    bmc_username: z.string(),
    bmc_password: z.string(),
    ssh_endpoint: z.string().optional(),
    ssh_username: z.string().optional(),
    ssh_private_key: z.string().optional(),
    jump: z.object({ endpoint: z.string(), username: z.string() }).optional(),
  }),
);
const clustersSchema = z.array(z.object({ name: z.string(), kubeconfig: z.string() }));
const imagesSchema = z.array(z.object({ ref: z.string(), digest: z.string(), served_at: z.string() }));
const bastionSchema = z.object({ host_key: z.string() });

type SimulatedMachine = z.infer<typeof machinesSchema>[number];

/** Below the connections that there are: commits at the same moment cost hardly more than one. */
const AT_ONCE = 8;

/** What a simulated site has for machines; a simulator that does not know them has none. */
export async function recordSimulatedMachines(deps: ServiceDeps, caller: Caller, controlUrl: string): Promise<number> {
  const read = async <T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> => {
    const answer = await fetch(new URL(path, controlUrl));
    return answer.ok ? schema.parse(await answer.json()) : undefined;
  };
  for (const { name, kubeconfig } of (await read("/clusters", clustersSchema)) ?? [])
    await unlessThere(createCluster(deps, caller, { name, apiUrl: "", kubeconfig, skipProbe: true }));
  for (const { ref, digest, served_at: location } of (await read("/images", imagesSchema)) ?? []) {
    const image = { name: ref, kind: "iso", location, digest, successProof: "ssh" };
    await recordImage(deps, caller, image);
  }
  const machines = (await read("/inventory/machines", machinesSchema)) ?? [];
  const bastion = machines.some(({ jump }) => jump) ? await read("/bastion", bastionSchema) : undefined;
  for (let from = 0; from < machines.length; from += AT_ONCE) {
    const some = machines.slice(from, from + AT_ONCE);
    await Promise.all(some.map((machine) => recordMachine(deps, caller, machine, bastion?.host_key)));
  }
  return machines.length;
}

/** The simulator is another one than that of an earlier version, or elsewhere: its machines would show another digest than the one on record. */
async function recordImage(deps: ServiceDeps, caller: Caller, image: CreateImage): Promise<void> {
  const [known] = await imageTable.list(deps.db, { names: [image.name] });
  if (known?.digest === image.digest && known.location === image.location) return;
  try {
    if (known) await deleteImage(deps, caller, image.name);
  } catch (error) {
    // A run installs it: at the next start.
    if (error instanceof AppError) return;
    throw error;
  }
  await unlessThere(createImage(deps, caller, image));
}

/** As its operator would. One on record already stays as it is: somebody may have changed it. */
async function recordMachine(
  deps: ServiceDeps,
  caller: Caller,
  machine: SimulatedMachine,
  bastionKey: string | undefined,
): Promise<void> {
  const { machine_id: id, jump } = machine;
  const known = await getMachine(deps, id).catch(ifMissing);
  if (known) return;
  await registerMachine(deps, caller, {
    id,
    labels: { simulated: "true" },
    spec: {
      provider: "",
      serial: machine.serial,
      macAddresses: machine.mac_addresses,
      rack: machine.rack,
      slot: machine.slot,
      location: "",
      customerId: "",
      targetClusterRef: "default-cluster",
      sshEndpoint: machine.ssh_endpoint ?? "",
      sshHostKey: "",
      jumpHosts:
        jump && bastionKey !== undefined
          ? [{ endpoint: jump.endpoint, hostKey: bastionKey, username: jump.username }]
          : [],
      bmcEndpoint: machine.bmc_endpoint,
      bmcProtocol: "redfish",
      bmcTlsTrust: "pin",
    },
  });
  await setMachineCredentials(deps, caller, {
    machineId: id,
    bmcUsername: machine.bmc_username,
    bmcPassword: machine.bmc_password,
    sshUsername: machine.ssh_private_key === undefined ? "" : (machine.ssh_username ?? ""),
    sshPrivateKey: machine.ssh_username === undefined ? "" : (machine.ssh_private_key ?? ""),
  });
}

const ifMissing = (error: unknown): undefined => {
  if (!(error instanceof AppError) || error.kind !== "not_found") throw error;
};

async function unlessThere(creating: Promise<unknown>): Promise<void> {
  await creating.catch((error: unknown) => {
    if (!(error instanceof AppError) || error.kind !== "already_exists") throw error;
  });
}
