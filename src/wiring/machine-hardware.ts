import type { Capabilities, Capability, Provider } from "../capabilities/provider.ts";
import type { BmcGateway } from "../providers/bmc-gateway.ts";
import { createKubernetesProvider } from "../providers/kubernetes/kubernetes-provider.ts";
import { createRedfishMachineProvider } from "../providers/redfish/redfish-machine-provider.ts";
import { createSshProvider } from "../providers/ssh/ssh-provider.ts";

/** The ways to reach machines, by the word that `machine.spec.provider` uses. */
export interface MachineHardware {
  providerOf(name: string): Provider | undefined;
  capabilitiesOf(name: string): ReadonlySet<Capability>;
  close(): Promise<void>;
}

export interface MachineHardwareOptions {
  readonly gateway: BmcGateway;
  readonly mayReach: (address: string) => boolean;
  readonly caCertificates?: readonly string[];
}

/** A datacentre that we control: BMCs over Redfish, operating systems over SSH, clusters over the Kubernetes API. */
export function wireMachineHardware(options: MachineHardwareOptions): MachineHardware {
  const redfish = createRedfishMachineProvider(options);
  const ssh = createSshProvider({ mayReach: options.mayReach });
  const kubernetes = createKubernetesProvider();
  const all: Partial<Capabilities> = { ...redfish.can, ...ssh.can, ...kubernetes.can };
  const byName = new Map<string, Provider>(["datacenter", "redfish"].map((name) => [name, { name, can: all }]));
  return {
    providerOf: (name) => byName.get(name),
    capabilitiesOf: (name) => new Set(Object.keys(byName.get(name)?.can ?? {}) as Capability[]),
    async close() {
      await redfish.close();
      ssh.close();
      kubernetes.close();
    },
  };
}
