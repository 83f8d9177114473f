import { timingSafeEqual, X509Certificate } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import { ADMIN, ANONYMOUS, type ApiUser, allows, bootstrapper, kubelet } from "./access-rules.ts";
import { type ApiReply, failure } from "./api-call.ts";
import type { Cluster } from "./cluster.ts";

/** Who calls: by a client certificate, by a token, or nobody. A token that nobody has is an error, and not nobody. */
export function signIn(cluster: Cluster, request: IncomingMessage): ApiUser | ApiReply {
  const user = userOf(cluster, request);
  if (user === undefined) return failure(401, "Unauthorized");
  return impersonated(cluster, user, request);
}

function userOf(cluster: Cluster, { headers, socket }: IncomingMessage): ApiUser | undefined {
  const certified = socket instanceof TLSSocket ? certifiedUser(cluster, socket) : undefined;
  if (certified !== undefined) return certified ?? undefined;
  const token = /^Bearer (\S+)$/i.exec(headers.authorization ?? "")?.[1];
  if (token === undefined) return headers.authorization === undefined ? ANONYMOUS : undefined;
  if (isSame(token, cluster.token)) return ADMIN;
  const known = cluster.users().find((user) => user.token !== null && isSame(token, user.token));
  if (known !== undefined) return signedIn(known);
  return cluster.admits(token) ? bootstrapper(token.split(".")[0] ?? "") : undefined;
}

const signedIn = ({ name, rules }: Pick<ApiUser, "name" | "rules">): ApiUser => ({
  name,
  groups: ["system:authenticated"],
  rules,
});

/** Undefined without one; null for one that this cluster has not signed, or that is over. */
function certifiedUser(cluster: Cluster, socket: TLSSocket): ApiUser | null | undefined {
  const shown = socket.getPeerX509Certificate();
  if (shown === undefined) return undefined;
  const isOurs = shown.verify(new X509Certificate(cluster.certificate.cert).publicKey);
  const now = new Date();
  if (!isOurs || shown.validFromDate > now || shown.validToDate < now) return null;
  const text = /^CN=(.*)$/m.exec(shown.subject)?.[1] ?? "";
  return named(cluster, text);
}

function named(cluster: Cluster, name: string): ApiUser {
  const node = /^system:node:(.+)$/.exec(name)?.[1];
  if (node !== undefined) return kubelet(node);
  return signedIn(cluster.users().find((user) => user.name === name) ?? { name, rules: [] });
}

/** `kubectl --as`: only who may impersonate users is taken for another. */
function impersonated(cluster: Cluster, user: ApiUser, { headers }: IncomingMessage): ApiUser | ApiReply {
  const name = headers["impersonate-user"];
  if (typeof name !== "string") return user;
  if (!allows(user, { verb: "impersonate", group: "", resource: "users", namespace: "", name }))
    return failure(
      403,
      `users "${name}" is forbidden: User "${user.name}" cannot impersonate resource "users" in API group "" at the cluster scope`,
      "Forbidden",
    );
  return named(cluster, name);
}

function isSame(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}
