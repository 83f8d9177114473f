/** What the commands of a lack name. */
export interface LackNames {
  readonly node: string;
  readonly site: string;
  readonly machine: string;
  /** Of the management controller, as the node was onboarded with it. */
  readonly address: string;
  readonly bundle: string;
  readonly allocation: string;
}

interface LackSpec {
  readonly what: string;
  /**
   * Gives what is missing. It can be run as it is printed: secrets and documents are asked for, or read from standard input. Empty: it comes
   * by itself.
   */
  readonly command: (names: LackNames) => string;
}

/**
 * What Millwright itself lacks where a job has failed. The action on the job fails again until it is given, so that its command comes first.
 */
export const LACKS = {
  enabled_site: {
    what: "the site is disabled",
    command: ({ site }) => `millwright fleet site update ${site} --enable`,
  },
  site_key: {
    what: "the site has no API key for its address",
    command: ({ site }) => `millwright fleet site update ${site} --api-key-file -`,
  },
  accepted_site_key: {
    what: "the site still has the API key that MAAS refused",
    command: ({ site }) => `millwright fleet site update ${site} --api-key-file -`,
  },
  bmc_address: {
    what: "its machine has another BMC address now than the node was onboarded with",
    command: ({ machine, address }) => `millwright machine update ${machine} --bmc-endpoint ${address}`,
  },
  bmc_account: {
    what: "its machine has no account for its BMC",
    command: ({ machine }) => `millwright machine set-credentials ${machine}`,
  },
  bundle: {
    what: "the site bootstrap bundle does not exist",
    command: ({ bundle }) => `millwright cloud-init create ${bundle} --file -`,
  },
  usable_bundle: {
    what: "the site bootstrap bundle is no user data, and documents do not change: delete it, then create it again",
    command: ({ bundle }) => `millwright cloud-init delete ${bundle}`,
  },
  roce_assignment: {
    what: "the site has no RoCE assignment for the node",
    command: ({ site }) => `millwright fleet roce import --site ${site} --file -`,
  },
  other_roce_assignment: {
    what: "the RoCE assignment of the node is still the one that could not be applied; if the machine or MAAS was put right instead, retry the stage",
    command: ({ site }) => `millwright fleet roce import --site ${site} --file -`,
  },
  released_node: {
    what: "an allocation uses the node",
    command: ({ allocation }) => `millwright fleet allocation release ${allocation}`,
  },
  released_allocation: {
    what: "an allocation of the node could not be released",
    command: ({ allocation }) => `millwright fleet allocation force-release ${allocation}`,
  },
  ended_allocation: {
    what: "an allocation of the node is being prepared or released, which ends by itself",
    command: () => "",
  },
  machine_to_deploy: {
    what: "MAAS has no machine to deploy again: remove the node, then onboard the server as a new one",
    command: ({ node }) => `millwright fleet decommission ${node} --mode full_decommission`,
  },
} as const satisfies Readonly<Record<string, LackSpec>>;
export type Lack = keyof typeof LACKS;
