import { setTimeout as pause } from "node:timers/promises";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import { stopped } from "../transport/bmc-lane.ts";
import type { IronicNode, Nodes } from "./node.ts";

/** From where a deployment can be begun, and by which of Ironic's verbs. */
const DEPLOY_BY: Readonly<Record<string, "active" | "rebuild">> = {
  available: "active",
  active: "rebuild",
  "deploy failed": "rebuild",
  error: "rebuild",
};

/** The next step towards "available". */
const NEXT: Readonly<Record<string, string>> = {
  enroll: "manage",
  manageable: "provide",
  "clean failed": "manage",
  "inspect failed": "manage",
  "adopt failed": "manage",
};

export const DEPLOY_FAILED: ReadonlySet<string> = new Set(["deploy failed", "error"]);

export const deployTarget = ({ label, provision }: IronicNode): "active" | "rebuild" => {
  const verb = DEPLOY_BY[provision];
  if (verb !== undefined) return verb;
  throw new DeviceFailure("busy", "bmc", `${label} is ${provision}: it cannot be installed now`);
};

/** Without cleaning the way takes a second or two; with it, an hour, which is not waited for here. */
const LOOKS = 20;
const BETWEEN_LOOKS = milliseconds(250);

/** Leads a node to where it can be deployed, through Ironic's own states. */
export async function bringToDeployable(nodes: Nodes, target: BmcTarget, call: CallContext): Promise<IronicNode> {
  let asked: string | undefined;
  for (let looks = 1; ; looks += 1) {
    const node = await nodes.readForCommand(target, call);
    if (DEPLOY_BY[node.provision] !== undefined) return node;
    const verb = NEXT[node.provision];
    if (verb !== undefined && asked === node.provision && node.lastError !== undefined) {
      throw new DeviceFailure(
        "refused_by_device",
        "bmc",
        `${node.label} does not leave ${node.provision}: ${node.lastError}`,
        { disposition: "retry" },
      );
    }
    if (verb !== undefined && asked !== node.provision) {
      asked = node.provision;
      await nodes.client.put(target, "/states/provision", { target: verb }, call);
    }
    if (looks === LOOKS) {
      const message = `${node.label} is ${node.provision}: it is installed once it is available`;
      throw new DeviceFailure("busy", "bmc", message);
    }
    await pause(BETWEEN_LOOKS, undefined, { signal: call.signal }).catch(() => {
      throw stopped(node.label, call.signal);
    });
  }
}
