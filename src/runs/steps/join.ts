import { randomInt } from "node:crypto";
import type { ClusterNode, JoinMaterial, NodeIdentity } from "../../capabilities/cluster.ts";
import { isSilence } from "../../capabilities/device-failure.ts";
import { AppError, causeOf, StepFailure } from "../../kernel/errors.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { type Payloads, parsePayload } from "../model/plan/payloads.ts";
import { type ActingContext, defineStep, type ProbeAnswer, type ProbeReport } from "../model/step.ts";
import { readBootId, whileUp } from "./facts/boot-id.ts";
import { notReady, silent } from "./facts/in-the-way.ts";
import { cordonOf } from "./facts/node-cordon.ts";
import { learntBy, readNodeIdentity } from "./facts/node-identity.ts";
import { endDetached, newMark, readState, startDetached } from "./scripts/detached-script.ts";
import { passOnOutput } from "./scripts/script-output.ts";

type Evidence = {
  readonly mark: string;
  /** Of the token that it joins with, which is not secret. Absent in what an older server noted. */
  readonly tokenId?: string;
  /** Null when the system did not answer. */
  readonly bootId: string | null;
  readonly systemUuid: string | null;
  readonly serial: string | null;
  readonly addresses: readonly string[];
};
type Acting = ActingContext<Payloads["join"], Evidence, "exec" | "cluster", "system">;

/** Longer than the step may take, so that it never expires under way; short enough to be worth nothing tomorrow. */
const TOKEN_LIVES = minutes(60);

/** A machine that has joined already keeps its membership: joining again would fail, and says nothing new. */
const JOIN_SCRIPT = `if [ -e /etc/kubernetes/kubelet.conf ]; then
  echo "this machine has joined a cluster already"
  exit 0
fi
kubeadm join "$JOIN_ENDPOINT" --token "$JOIN_TOKEN" --discovery-token-ca-cert-hash "$JOIN_CA_HASH"
`;

/**
 * Joins the machine to a cluster with material that is minted for it. Done when the cluster has a node that is this machine by
 * its system UUID, serial number or address, and that tells of the boot that the machine itself tells of: a node object may be
 * left over from an earlier life.
 */
export const join = defineStep({
  kind: "join",
  needs: ["exec", "cluster"],
  mayUse: ["system"],
  defaults: { timeout: minutes(10), maxRetries: 1 },
  parse: parsePayload.join,
  joinsCluster: true,
  endsIn: "IN_SERVICE",
  refersTo: ({ cluster_ref }) => [{ kind: "cluster", ref: cluster_ref }],

  async before(context): Promise<Evidence> {
    const { can, targets, call } = context;
    const { systemUuid, serial, addresses } = await readNodeIdentity(context);
    const bootId = (await readBootId(can.exec, await targets.ssh(), call)) ?? null;
    return { mark: newMark(), tokenId: newTokenId(), bootId, systemUuid, serial, addresses };
  },

  async act({ payload, evidence, can, targets, call, log }: Acting) {
    const cluster = await targets.cluster(payload.cluster_ref);
    const wanted = { id: evidence.tokenId ?? newTokenId(), lifetime: TOKEN_LIVES };
    const { endpoint, token, caCertHash } = await minted(() => can.cluster.mintJoin(cluster, wanted, call));
    log(`[join] join material for cluster ${cluster.name} minted; joining at ${endpoint}\n`);
    const script = { mark: evidence.mark, exec: can.exec, ssh: await targets.ssh(), call, asRoot: true } as const;
    const env = { JOIN_ENDPOINT: endpoint, JOIN_TOKEN: token, JOIN_CA_HASH: caCertHash };
    await startDetached(script, { text: JOIN_SCRIPT, env });
  },

  async probe(context: Acting): Promise<ProbeAnswer> {
    const { payload, evidence, can, targets, call } = context;
    const cluster = await targets.cluster(payload.cluster_ref);
    const ssh = await targets.ssh();
    const script = { mark: evidence.mark, exec: can.exec, ssh, call, asRoot: true } as const;
    const inside = await whileUp(async () => {
      const state = await readState(script);
      if (state.is !== "absent") await passOnOutput(script, context, state);
      return { state, bootId: await readBootId(can.exec, ssh, call) };
    });
    if (inside === undefined)
      return { state: "unknown", message: "waiting for the machine to answer", cause: silent("ssh") };
    const { state, bootId } = inside;
    if (state.is === "absent") return "not_done";
    if (state.is === "ended" && state.code !== 0)
      throw new StepFailure(
        "join_failed",
        `kubeadm join ended with exit code ${state.code}; its output is in the run's log`,
        { facts: { exit_code: state.code } },
      );
    const node = await whileUp(async () => ({
      found: await can.cluster.findNode(cluster, identityOf(evidence), call),
    }));
    if (node === undefined)
      return { state: "unknown", message: `cluster ${cluster.name} does not answer`, cause: silent("cluster") };
    const missing = whyNotThere(node.found, bootId);
    // A node that is there already is not done being joined while kubeadm is at it; and what it says last belongs into the log.
    if (state.is === "running") return { state: "in_progress", message: "kubeadm join is running" };
    if (missing === undefined) {
      await revokeToken(context);
      return isIn("joined", cluster.name, node.found, context, await leftBehind(context, cluster.name));
    }
    // What the cluster has taken up goes on without the script, unless the machine itself went down under it.
    if (state.is === "cut_off" && bootId !== evidence.bootId)
      throw new StepFailure("join_failed", `the machine rebooted during kubeadm join, and ${missing}`);
    return { state: "in_progress", message: missing, cause: notReady(node.found?.name) };
  },

  /** Whoever joined it: the cluster has a node that is this machine, of its present boot. */
  async observe(context: Acting): Promise<ProbeAnswer> {
    const { payload, evidence, can, targets, call } = context;
    const cluster = await targets.cluster(payload.cluster_ref);
    const node = await can.cluster.findNode(cluster, identityOf(evidence), call);
    const missing = whyNotThere(node, await readBootId(can.exec, await targets.ssh(), call));
    return missing === undefined
      ? isIn("is in", cluster.name, node, context, await leftBehind(context, cluster.name))
      : { state: "not_done", message: missing, cause: notReady(node?.name) };
  },

  async undo(context: Acting) {
    const { evidence, can, targets, call } = context;
    await revokeToken(context);
    await endDetached({ mark: evidence.mark, exec: can.exec, ssh: await targets.ssh(), call, asRoot: true });
  },
  undoIsPartial: true,
  insideSystem: true,
  residue: () => "the machine may have joined its cluster, or be joining it",
});

/**
 * Without the material nothing has begun on the machine, so that a cluster that does not answer is asked again at once, and then with
 * the next attempt: nobody waits for an effect that cannot come.
 */
async function minted(mint: () => Promise<JoinMaterial>): Promise<JoinMaterial> {
  try {
    return await mint().catch((error: unknown) => {
      if (isSilence(error)) return mint();
      throw error;
    });
  } catch (error) {
    if (!isSilence(error)) throw error;
    throw StepFailure.of(causeOf(error), error.message, "retry");
  }
}

/** Best effort: a token that stays ends by itself, and is no reason to fail. */
async function revokeToken({ payload, evidence, can, targets, call, log }: Acting): Promise<void> {
  if (evidence.tokenId === undefined) return;
  try {
    await can.cluster.revokeJoin(await targets.cluster(payload.cluster_ref), evidence.tokenId, call);
  } catch (error) {
    if (call.signal.aborted || !(error instanceof StepFailure || error instanceof AppError)) throw error;
    log(`[join] the join token stays until it expires: ${error.message}\n`);
  }
}

const ID_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";
const newTokenId = (): string => Array.from({ length: 6 }, () => ID_LETTERS[randomInt(ID_LETTERS.length)]).join("");

/** The node that stays in the cluster of before, which nobody but its people may delete; empty where there is none to be seen. */
async function leftBehind({ machine, evidence, can, targets, call }: Acting, cluster: string): Promise<string> {
  const before = machine.facts.joinedCluster ?? machine.facts.leftCluster;
  if (before === null || before === cluster) return "";
  try {
    const node = await can.cluster.findNode(await targets.cluster(before), identityOf(evidence), call);
    return node === undefined
      ? ""
      : `; node ${node.name} of ${before} is left over from before: delete it there (kubectl delete node ${node.name})`;
  } catch (error) {
    if (call.signal.aborted || !(error instanceof StepFailure || error instanceof AppError)) throw error;
    return `; its node in ${before} may be left over from before, which cannot be seen now: ${error.message}`;
  }
}

function isIn(
  how: string,
  cluster: string,
  node: ClusterNode | undefined,
  { machine, evidence }: Acting,
  left: string,
): ProbeReport {
  const cordon = node === undefined ? undefined : cordonOf(node, cluster, machine);
  const message = `${how} ${cluster} as node ${node?.name}${cordon?.note ?? ""}${left}`;
  return {
    state: "done",
    message,
    facts: { joinedCluster: cluster, ...learntBy(evidence, machine), ...cordon?.facts },
  };
}

const identityOf = ({ systemUuid, serial, addresses }: Evidence): NodeIdentity => ({ systemUuid, serial, addresses });

function whyNotThere(node: ClusterNode | undefined, bootId: string | undefined): string | undefined {
  if (node === undefined) return "the cluster has no node that is this machine yet";
  if (node.bootId !== null && bootId !== undefined && node.bootId !== bootId)
    return `node ${node.name} reports an earlier boot of this machine`;
  return undefined;
}
