/** One installation over the network of one machine, ordered by a run. The same order given again is the same installation. */
export type NetInstallOrder = {
  readonly machineId: string;
  /** It holds the machine. */
  readonly runId: string;
  /** Tells this order from every other: the digest of what only the machine is to know. */
  readonly orderId: string;
  /** What the installed system is to show of itself in `/etc/millwright-image`, where its installer can write that. */
  readonly stamp: string;
  /** What is installed: a workflow of the server's. */
  readonly workflowId: string;
  /** `sha256:…` of the image; a workflow that names another one is not what was ordered. */
  readonly digest: string;
  /** By which the machine is known when it boots; null: none is on record. */
  readonly mac: string | null;
};

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
 * It only reads. The order itself is an effect of the step, written with the announcement that the step acts: so it is on record
 * before the machine is restarted, and no step needs a database. An order ends with its run.
 *
 * @throws AppError "unavailable" or "deadline_exceeded" while the record cannot be had: that is nobody's failed attempt.
 */
export interface NetInstall {
  /** @throws StepFailure "fail" when the installation cannot be ordered: there is no such workflow, the node is retired. */
  check(order: NetInstallOrder): Promise<void>;
  read(order: NetInstallOrder): Promise<NetInstallSeen>;
}
