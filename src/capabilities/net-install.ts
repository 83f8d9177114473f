/** One installation over the network of one machine, ordered by a run. The same order given again is the same installation. */
export interface NetInstallOrder {
  readonly machineId: string;
  /** It holds the machine. */
  readonly runId: string;
  /** Single use: tells this order from every other. */
  readonly token: string;
  /** What the installed system is to show of itself in `/etc/millwright-image`, where its installer can write that. */
  readonly stamp: string;
  /** What is installed: a workflow of the server's. */
  readonly workflowId: string;
  /** `sha256:…` of the image; a workflow that names another one is not what was ordered. */
  readonly digest: string;
}

export interface NetInstallSeen {
  /**
   * absent: this order is not on record, or another one is by now. ordered: it waits for the machine to boot. begun: the machine
   * was handed its install script. failed: it is over, and people or another order must see to it.
   */
  readonly state: "absent" | "ordered" | "begun" | "installing" | "failed" | "installed";
  /** For people: what the machine told of it last. */
  readonly message: string;
  /** It was reported complete by whoever had been handed the script. */
  readonly tokenShown: boolean;
  /** The proof is still to be told. */
  readonly awaitsProof: boolean;
}

/**
 * Installing over the server's own boot path: the machine boots from the network, is handed what to install, and reports. Works
 * with every BMC that can make a machine boot from the network.
 *
 * Whoever orders it still has to restart the machine. An order ends with its run.
 *
 * @throws StepFailure "fail" when it cannot be: there is no such workflow, the node is retired, the run does not hold the machine.
 */
export interface NetInstall {
  order(order: NetInstallOrder): Promise<void>;
  read(order: NetInstallOrder): Promise<NetInstallSeen>;
}
