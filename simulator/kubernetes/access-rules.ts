import { type ApiReply, failure } from "./api-call.ts";

/** What one of a role's rules allows. `*` stands for anything. */
export interface AccessRule {
  readonly verbs: readonly string[];
  /** With a subresource behind a slash: pods/eviction. */
  readonly resources: readonly string[];
  /** Absent: in all namespaces, and for what is in none. */
  readonly namespace?: string;
  readonly names?: readonly string[];
}

/** Somebody whom the API knows by a token or a certificate. */
export interface ApiUser {
  readonly name: string;
  readonly groups: readonly string[];
  readonly rules: readonly AccessRule[];
}

/** What a request wants to do, as a role names it. */
export interface Attributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

export const ADMIN: ApiUser = {
  name: "kubernetes-admin",
  groups: ["system:masters", "system:authenticated"],
  rules: [{ verbs: ["*"], resources: ["*"] }],
};

export const ANONYMOUS: ApiUser = {
  name: "system:anonymous",
  groups: ["system:unauthenticated"],
  // kubeadm binds it to nobody else: who signs in needs a right of its own.
  rules: [{ verbs: ["get"], resources: ["configmaps"], namespace: "kube-public", names: ["cluster-info"] }],
};

/** What kubeadm lets those do who hold a bootstrap token: ask for a certificate, and read what a kubelet starts from. */
export const bootstrapper = (tokenId: string): ApiUser => ({
  name: `system:bootstrap:${tokenId}`,
  groups: ["system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated"],
  rules: [
    { verbs: ["create", "get", "list", "watch"], resources: ["certificatesigningrequests"] },
    { verbs: ["get"], resources: ["nodes"] },
    {
      verbs: ["get"],
      resources: ["configmaps"],
      namespace: "kube-system",
      names: ["kubeadm-config", "kubelet-config"],
    },
  ],
});

/** A kubelet may register its own node, and nobody else's. It reads no daemon sets, which `kubectl drain` asks about. */
export const kubelet = (node: string): ApiUser => ({
  name: `system:node:${node}`,
  groups: ["system:nodes", "system:authenticated"],
  rules: [
    { verbs: ["create"], resources: ["nodes"] },
    { verbs: ["get", "list", "watch"], resources: ["nodes", "pods"] },
    { verbs: ["patch", "update"], resources: ["nodes"], names: [node] },
    { verbs: ["create"], resources: ["pods/eviction"] },
  ],
});

const OPEN_PATHS = /^\/(?:version|healthz|livez|readyz)$/;
const DISCOVERY = /^\/(?:api|apis|openapi)(?:\/v\d+|\/[a-z.0-9]+(?:\/v\d+)?)?$/;
const RESOURCE =
  /^\/(?:api\/v1|apis\/([^/]+)\/v1)(?:\/namespaces\/([^/]+)(?=\/[^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/;
const VERBS: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };

/** Undefined for what is no resource. */
function attributesOf(method: string, path: string, isWatch: boolean): Attributes | undefined {
  if (DISCOVERY.test(path)) return undefined;
  const match = RESOURCE.exec(path);
  if (match === null) return undefined;
  const [, group = "", namespace = "", resource = "", name = "", sub = ""] = match;
  const read = name !== "" ? "get" : isWatch ? "watch" : "list";
  const verb = method === "GET" || method === "HEAD" ? read : (VERBS[method] ?? method.toLowerCase());
  return { verb, group, namespace, resource: sub === "" ? resource : `${resource}/${sub}`, name };
}

export const allows = ({ rules }: ApiUser, { verb, resource, namespace, name }: Attributes): boolean =>
  rules.some(
    (rule) =>
      has(rule.verbs, verb) &&
      has(rule.resources, resource) &&
      (rule.namespace === undefined || rule.namespace === namespace) &&
      (rule.names === undefined || (name !== "" && rule.names.includes(name))),
  );

const has = (words: readonly string[], word: string): boolean => words.includes("*") || words.includes(word);

/** Every user may ask what it may do. */
const SELF_REVIEW = "selfsubjectaccessreviews";

/** Why the user may not do this, in the words of an API server; undefined where it may. */
export function forbiddenTo(
  user: ApiUser,
  { method, path, isWatch }: { readonly method: string; readonly path: string; readonly isWatch: boolean },
): ApiReply | undefined {
  if (OPEN_PATHS.test(path)) return undefined;
  const isSignedIn = user.groups.includes("system:authenticated");
  const attributes = attributesOf(method, path, isWatch);
  if (attributes === undefined) {
    if (isSignedIn) return undefined;
    return forbidden(`User "${user.name}" cannot ${method.toLowerCase()} path "${path}"`);
  }
  if (isSignedIn && attributes.resource === SELF_REVIEW) return undefined;
  if (allows(user, attributes)) return undefined;
  const { verb, group, resource, namespace, name } = attributes;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace "${namespace}"`;
  const what = name === "" ? resource : `${resource} "${name}"`;
  return forbidden(
    `${what} is forbidden: User "${user.name}" cannot ${verb} resource "${resource}" in API group "${group}" ${where}`,
  );
}

const forbidden = (message: string): ApiReply => failure(403, message, "Forbidden");
