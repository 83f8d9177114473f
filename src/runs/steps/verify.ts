import { StepFailure } from "../../kernel/errors.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { parsePayload } from "../model/plan/payloads.ts";
import { defineStep } from "../model/step.ts";
import { readBootId, whileUp } from "./facts/boot-id.ts";
import { notReady, silent } from "./facts/in-the-way.ts";
import { readKubeletVersion } from "./facts/kubelet-version.ts";
import { cordonOf } from "./facts/node-cordon.ts";
import { hasMark, learntBy, readNodeIdentity } from "./facts/node-identity.ts";

/**
 * Confirms that the machine serves in its cluster: a node that is this machine, of its present boot and with the kubelet that is
 * installed, is Ready. Changes nothing: where a cordon of ours was left on it, the machine is told.
 */
export const verify = defineStep({
  kind: "verify",
  needs: ["cluster"],
  mayUse: ["system", "exec"],
  defaults: { timeout: minutes(5), maxRetries: 0 },
  parse: parsePayload.verify,
  refersTo: ({ cluster_ref }) => [{ kind: "cluster", ref: cluster_ref }],

  async before(context) {
    const identity = await readNodeIdentity(context);
    if (!hasMark(identity))
      throw new StepFailure(
        "no_evidence",
        "nothing is known of the machine by which its node could be told: neither its BMC nor its system answers",
      );
    return { systemUuid: identity.systemUuid, serial: identity.serial, addresses: [...identity.addresses] };
  },
  async act() {},
  async probe({ payload, evidence, machine, can, targets, call }) {
    const { exec } = can;
    const cluster = await targets.cluster(payload.cluster_ref);
    const answer = await whileUp(async () => ({ node: await can.cluster.findNode(cluster, evidence, call) }));
    if (answer === undefined)
      return { state: "unknown", message: `cluster ${cluster.name} does not answer`, cause: silent("cluster") };
    const { node } = answer;
    if (node === undefined)
      return {
        state: "in_progress",
        message: `cluster ${cluster.name} has no node that is this machine; unless it is about to join, it must be joined first, as REPAVE does`,
        cause: notReady(),
      };
    if (!node.ready)
      return {
        state: "in_progress",
        message: `node ${node.name} is not Ready: ${node.reason}`,
        cause: notReady(node.name),
      };
    const bootId =
      exec === undefined || machine.spec.ssh === null ? undefined : await readBootId(exec, await targets.ssh(), call);
    if (bootId !== undefined && node.bootId !== null && node.bootId !== bootId)
      return {
        state: "in_progress",
        message: `node ${node.name} is Ready, but reports an earlier boot`,
        cause: notReady(node.name),
      };
    const installed =
      exec === undefined || bootId === undefined
        ? undefined
        : await readKubeletVersion(exec, await targets.ssh(), call);
    if (installed !== undefined && node.kubeletVersion !== null && node.kubeletVersion !== installed)
      return {
        state: "in_progress",
        message: `node ${node.name} is Ready, but with the kubelet ${node.kubeletVersion}, and ${installed} is installed`,
        cause: notReady(node.name),
      };
    const cordon = cordonOf(node, cluster.name, machine);
    const version = node.kubeletVersion === null ? "" : ` with the kubelet ${node.kubeletVersion}`;
    return {
      state: "done",
      message: `node ${node.name} is Ready in ${cluster.name}${version} (matched by ${node.matchedBy})${cordon.note}`,
      facts: { joinedCluster: cluster.name, ...learntBy(evidence, machine), ...cordon.facts },
      conditions: [
        {
          type: "InCustomerCluster",
          status: true,
          reason: "NodeReady",
          message: `node ${node.name} of ${cluster.name}`,
        },
      ],
    };
  },
});
