import { type MaasMachine, observedStateOf } from "../../../../capabilities/fleet/maas-machine.ts";
import type { StepFailure } from "../../../../kernel/errors.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { shownAs } from "./on-onboarding.ts";

/** Numbers, since names differ between versions of MAAS. */
const FAILED_COMMISSIONING = 2;
const FAILED_TESTING = 22;

/**
 * How far MAAS has led a machine, as onboarding goes by it. blank: not commissioned, or to be commissioned again. editable: its disks and
 * ports can be changed. begun: its deployment was ordered by somebody. moving: it changes by itself. unusable: nothing can be built on it.
 */
export type Reached =
  | "blank"
  | "commissioning"
  | "editable"
  | "allocated"
  | "deploying"
  | "deployed"
  | "deploy_failed"
  | "moving"
  | "unusable";

export function reachedBy(machine: MaasMachine): Reached {
  switch (observedStateOf(machine)) {
    case "New":
      return "blank";
    case "Commissioning":
      return "commissioning";
    case "Ready":
      return "editable";
    case "Allocated":
      return "allocated";
    case "Deploying":
      return "deploying";
    case "Deployed":
      return "deployed";
    case "Failed deployment":
      return "deploy_failed";
    case "Transient":
      return "moving";
    case "Failed":
      return machine.status === FAILED_COMMISSIONING || machine.status === FAILED_TESTING ? "blank" : "unusable";
    default:
      return "unusable";
  }
}

export const hasFailedTesting = ({ status }: MaasMachine): boolean => status === FAILED_TESTING;
export const hasFailedCommissioning = ({ status }: MaasMachine): boolean => status === FAILED_COMMISSIONING;

export const notUsable = (machine: MaasMachine): StepFailure =>
  failedAs(
    "machine_not_usable",
    `MAAS shows ${machine.hostname} as ${shownAs(machine)}: nothing can be built on that`,
    {
      shown: machine.statusName,
    },
  );

export const drifted = (machine: MaasMachine, expected: string): StepFailure =>
  failedAs("drift_not_adoptable", `MAAS shows ${machine.hostname} as ${shownAs(machine)}, and not as ${expected}`, {
    expected,
    shown: machine.statusName,
  });
