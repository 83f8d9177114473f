import { type Machine, needsEndpoints } from "../lifecycles/machine/machine.ts";
import { FAKE_PORT, fakeBmc, fakeCluster, fakeSsh } from "../providers/fake/fake-places.ts";
import { clusterNameOf, type StepTargets } from "../runs/model/targets.ts";

export const isFake = ({ spec }: Pick<Machine, "spec">): boolean => !needsEndpoints(spec);

/** Whatever is on record of a fake machine, nothing of it is called: no address of it leads to a network, and no secret is read. */
export const fakeTargets = (machine: Machine, targets: StepTargets): StepTargets => ({
  ...targets,
  bmc: async () => fakeBmc(machine.id),
  ssh: async () => fakeSsh(machine.id),
  cluster: async (ref) => fakeCluster(clusterNameOf(ref, machine)),
});

/** A fake machine needs no endpoints on record: it has those that all of them have. Other machines stay as they are. */
export function withFakeEndpoints(machine: Machine): Machine {
  if (!isFake(machine)) return machine;
  const { id, spec } = machine;
  const place = { address: id, port: FAKE_PORT };
  return {
    ...machine,
    spec: {
      ...spec,
      ssh: { ...place, hostKey: null, jumpHosts: [] },
      bmc: { ...place, protocol: null, scheme: "https", trust: "off" },
    },
  };
}
