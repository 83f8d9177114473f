/** Who was being called when work failed. */
export const PEERS = {
  bmc: "the BMC of a machine or shelf, or the service that stands in for it, such as Ironic",
  ssh: "the machine's own system, over SSH",
  jump_host: "a host on the way to the machine's system",
  cluster: "the API of a Kubernetes cluster",
  rack_manager: "the rack manager, a service that works on all devices of a rack",
  artifact_server: "the server that a firmware file is downloaded from",
  image_server: "the server that an installation image is read from",
  switch_os: "the operating system of a switch (NVOS), over its REST API",
} as const;
export type Peer = keyof typeof PEERS;

/** What may be known of a failure besides its cause. Never a secret: facts are stored, shown and sent. */
export const FACTS = {
  at: "who failed: bmc, ssh, jump_host, cluster, rack_manager, artifact_server, image_server or switch_os",
  address: "the host and port that were called",
  status: "the HTTP status or the IPMI completion code of the answer",
  since: "since when it has been so",
  expected: "what should have been shown: a serial number, a fingerprint, a digest",
  shown: "what was shown instead",
  accept: "what `machine update --ssh-host-key` takes to accept the key that was shown",
  what: "what is missing: a provider, a workflow, a step kind, a program; or a kind of reference",
  name: "the name of what is missing, or of the cluster",
  script: "the script",
  exit_code: "how the script ended",
  progress: "what the BMC said of the system, or of the power",
  holder: "the thing that holds the claim",
} as const;
export type FactName = keyof typeof FACTS;
type NumericFact = "status" | "exit_code";
export type CauseFacts = {
  readonly [F in FactName]?: F extends "at" ? Peer : F extends NumericFact ? number : string;
};
