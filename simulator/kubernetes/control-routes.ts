import { generateKeyPairSync } from "node:crypto";
import { z } from "zod";
import { issueCertificate } from "../certificate/issued.ts";
import { type ControlCall, ok, type Reply, type Route, refused } from "../control-route.ts";
import { InvalidInput, parseInput } from "../invalid-input.ts";
import type { Cluster } from "./cluster.ts";
import { userKubeconfig } from "./kubeconfig.ts";

const name = z.string().regex(/^[a-z0-9]([a-z0-9.:-]{0,251}[a-z0-9])?$/);
const labels = z.record(z.string(), z.string());
const userSchema = z.strictObject({
  name,
  sign_in: z.enum(["token", "certificate"]).default("token"),
  /** Of its certificate; a negative number for one that is over. */
  days: z.number().min(-1).max(3_650).default(365),
  rules: z.array(
    z.strictObject({
      verbs: z.array(z.string()),
      resources: z.array(z.string()),
      namespace: name.optional(),
      names: z.array(z.string()).optional(),
    }),
  ),
});
const podSchema = z.strictObject({
  node: name,
  namespace: name.default("default"),
  name,
  /** Of its replica set; null for a bare pod. */
  owner: name.nullable().default(null),
  labels: labels.default({}),
  phase: z.enum(["Running", "Succeeded", "Failed"]).default("Running"),
  mirror: z.boolean().default(false),
  local_data: z.boolean().default(false),
  finalizers: z.array(z.string()).default([]),
});
const budgetSchema = z.strictObject({
  namespace: name.default("default"),
  name,
  labels,
  /** Null: there is none any more. */
  min_available: z.int().min(0).nullable(),
});
const namespaceSchema = z.strictObject({ name, terminating: z.boolean() });

/** What the people of a cluster put into it. */
export const CLUSTER_ROUTES: readonly Route[] = [
  ["POST", /^\/clusters\/([^/]+)\/users$/, addUser],
  ["POST", /^\/clusters\/([^/]+)\/pods$/, placePod],
  ["PUT", /^\/clusters\/([^/]+)\/budgets$/, putBudget],
  ["PUT", /^\/clusters\/([^/]+)\/namespaces$/, putNamespace],
  ["POST", /^\/clusters\/([^/]+)\/compact$/, compact],
];

function clusterOf({ options, id }: ControlCall): { readonly cluster: Cluster; readonly endpoint: string } {
  const found = options.clusterNamed(id);
  if (found === undefined) throw new InvalidInput("", `there is no cluster ${id}; GET /clusters lists them`);
  return found;
}

/** With a kubeconfig that lets it in, and no more than its rules allow. */
function addUser(call: ControlCall): Reply {
  const { cluster, endpoint } = clusterOf(call);
  const { name: user, sign_in, days, rules } = parseInput(userSchema, call.body);
  const record = { name: user, rules: rules.map(withoutAbsent) };
  if (sign_in === "token") {
    const token = cluster.tokenFor(user);
    cluster.objects.putUser({ ...record, token });
    return ok({ name: user, token, kubeconfig: userKubeconfig(cluster, endpoint, { token }) });
  }
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const certificate = issueCertificate(
    cluster.certificate,
    { commonName: user, organization: "" },
    { publicKey: publicKey.export({ type: "spki", format: "der" }), now: new Date(call.options.clock.realNow()), days },
  );
  cluster.objects.putUser({ ...record, token: null });
  const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  return ok({ name: user, kubeconfig: userKubeconfig(cluster, endpoint, { certificate, key }) });
}

const withoutAbsent = ({ verbs, resources, namespace, names }: z.infer<typeof userSchema>["rules"][number]) => ({
  verbs,
  resources,
  ...(namespace !== undefined && { namespace }),
  ...(names !== undefined && { names }),
});

function placePod(call: ControlCall): Reply {
  const { cluster } = clusterOf(call);
  const { mirror, local_data, ...pod } = parseInput(podSchema, call.body);
  if (cluster.node(pod.node) === undefined) return refused(404, `there is no node ${pod.node}`);
  cluster.objects.putPod({ ...pod, isMirror: mirror, hasLocalData: local_data });
  return ok(pod);
}

function putBudget(call: ControlCall): Reply {
  const { objects } = clusterOf(call).cluster;
  const { min_available: minAvailable, ...budget } = parseInput(budgetSchema, call.body);
  if (minAvailable === null) objects.deleteBudget(budget.namespace, budget.name);
  else objects.putBudget({ ...budget, minAvailable });
  return ok(budget);
}

function putNamespace(call: ControlCall): Reply {
  const { name: namespace, terminating } = parseInput(namespaceSchema, call.body);
  clusterOf(call).cluster.objects.setTerminating(namespace, terminating);
  return ok({ name: namespace, terminating });
}

function compact(call: ControlCall): Reply {
  clusterOf(call).cluster.compact();
  return ok({});
}
