import type { ClusterAccess } from "../capabilities/clusters/access.ts";
import type { NetInstall } from "../capabilities/net-install.ts";
import type { Capabilities, Capability, Provider } from "../capabilities/provider.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { bmcProtocolOf } from "../lifecycles/machine/endpoint.ts";
import type { MachineProvider, MachineSpec } from "../lifecycles/machine/machine.ts";
import { createAnsibleProvider } from "../providers/ansible/ansible-provider.ts";
import { createFakeProvider, type FakeProviderOptions } from "../providers/fake/fake-provider.ts";
import { createIpmiProvider, type IpmiProviderOptions } from "../providers/ipmi/ipmi-provider.ts";
import { createIronicProvider } from "../providers/ironic/ironic-provider.ts";
import { createKubernetesProvider } from "../providers/kubernetes/kubernetes-provider.ts";
import { createRedfishMachineProvider } from "../providers/redfish/machine/redfish-machine-provider.ts";
import { createSshProvider } from "../providers/ssh/ssh-provider.ts";
import type { BmcGateway } from "../providers/transport/bmc-gateway.ts";

/** What of a machine's spec decides how it is worked on. */
export type MachineAccess = Pick<MachineSpec, "provider" | "bmc">;

/** The ways to reach machines. */
export interface MachineHardware {
  /** What machines may name as their provider here. */
  readonly providers: readonly MachineProvider[];
  /** Undefined: the machine names a provider that this server does not have. */
  providerOf(spec: MachineAccess): Provider | undefined;
  capabilitiesOf(spec: MachineAccess): ReadonlySet<Capability>;
  /** Of clusters, which belong to no machine. Absent: they are not tried before they are needed. */
  readonly clusterAccess?: ClusterAccess;
  /** Whether it inserts a second medium, from which installers learn what to install. */
  takesSeeds(spec: MachineAccess): boolean;
  close(): Promise<void>;
}

export interface MachineHardwareOptions {
  /** Machines that exist in this process alone. Absent: there are none. */
  readonly fake?: FakeProviderOptions;
  /** Absent: the system's. */
  readonly clock?: Clock;
  readonly gateway: BmcGateway;
  /** For services that have many machines in their care, and bear more at once than a BMC. Absent: the same. */
  readonly services?: BmcGateway;
  readonly mayReach: (address: string) => boolean;
  readonly caCertificates?: readonly string[];
  /** Absent: BMCs and Ironic are called over plain HTTP too. */
  readonly plainHttp?: boolean;
  /** The server's own boot path. Absent: it has none. */
  readonly netInstall?: NetInstall;
  readonly ipmi?: Pick<IpmiProviderOptions, "command" | "cipher" | "bootMode">;
}

/** How the machine itself is worked on from outside, by the word that `machine.spec.provider` uses. */
type Ways = Partial<Record<MachineProvider, (spec: MachineAccess) => Partial<Capabilities>>>;

/**
 * The providers differ in how they get at a machine from outside: through its BMC, or through a service that has it in its care.
 * The operating system on it is reached over SSH and clusters through the Kubernetes API, whichever that is, unless the provider
 * brings its own way.
 */
export function wireMachineHardware(options: MachineHardwareOptions): MachineHardware {
  const redfish = createRedfishMachineProvider(options);
  const ironic = createIronicProvider({ ...options, gateway: options.services ?? options.gateway });
  const clock = options.clock && { clock: options.clock };
  const ipmi = createIpmiProvider({ gateway: options.gateway, mayReach: options.mayReach, ...clock, ...options.ipmi });
  const ssh = createSshProvider({ mayReach: options.mayReach });
  const ansible = createAnsibleProvider({ exec: ssh.can.exec, mayReach: options.mayReach });
  const kubernetes = createKubernetesProvider({ mayReach: options.mayReach, ...clock });
  const fake = options.fake && createFakeProvider(options.fake);
  // A service that has machines in its care boots them itself; where there is just a BMC, our own boot path is there for them.
  const ownPath = options.netInstall && { netInstall: options.netInstall };
  const bmcs = { redfish: { ...redfish.can, ...ownPath }, ipmi: { ...ipmi.can, ...ownPath } } as const;
  const ways: Ways = {
    datacenter: (spec) => bmcs[bmcProtocolOf(spec)],
    redfish: () => bmcs.redfish,
    ipmi: () => bmcs.ipmi,
    ironic: () => ironic.can,
    // Nobody but MAAS touches its BMC.
    maas: () => ({}),
    ...(fake && { fake: () => fake.can }),
  };

  const providerOf = (spec: MachineAccess): Provider | undefined => {
    const name = spec.provider;
    const way = Object.hasOwn(ways, name) ? ways[name as MachineProvider] : undefined;
    // A fake machine is fake throughout: nothing of it leads to a real one.
    const inside = name === "fake" ? {} : { ...ssh.can, ...ansible.can, ...kubernetes.can };
    return way && { name, can: { ...inside, ...way(spec) } };
  };
  return {
    providers: Object.keys(ways) as MachineProvider[],
    clusterAccess: kubernetes.can.clusterAccess,
    providerOf,
    capabilitiesOf: (spec) => new Set(Object.keys(providerOf(spec)?.can ?? {}) as Capability[]),
    takesSeeds: (spec) => providerOf(spec)?.can.imaging?.checkSeed !== undefined,
    async close() {
      await redfish.close();
      ironic.close();
      ssh.close();
      kubernetes.close();
    },
  };
}
