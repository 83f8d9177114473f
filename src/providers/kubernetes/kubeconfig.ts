import { parse } from "yaml";
import type { ClusterCredentials, ClusterTarget } from "../../capabilities/cluster-target.ts";
import { AppError } from "../../kernel/errors.ts";
import { isResource, type Resource } from "../transport/device-json.ts";

/**
 * The target that a kubeconfig's current context means. Whatever would run a program or read a file of ours is refused: it comes
 * from outside.
 *
 * @throws AppError invalid_argument that names the member of the file, never its contents.
 */
export function targetOfKubeconfig(name: string, text: string, field = "kubeconfig"): ClusterTarget {
  const config = readYaml(text, field);
  const contexts = membersNamed(config, "contexts");
  const wanted = textOf(config, "current-context") ?? [...contexts.keys()][0];
  const context = wanted === undefined ? undefined : objectOf(contexts.get(wanted), "context");
  if (context === undefined)
    throw refusal(field, "names no context that it has: current-context must be one of contexts");
  const cluster = objectOf(membersNamed(config, "clusters").get(textOf(context, "cluster") ?? ""), "cluster");
  const user = objectOf(membersNamed(config, "users").get(textOf(context, "user") ?? ""), "user");
  if (cluster === undefined) throw refusal(field, "has no cluster of the name that its context gives");
  if (user === undefined) throw refusal(field, "has no user of the name that its context gives");
  const server = textOf(cluster, "server") ?? "";
  if (!URL.canParse(server) || !/^https?:$/.test(new URL(server).protocol))
    throw refusal(`${field}.clusters.cluster.server`, "must be an http or https address");
  if (cluster["insecure-skip-tls-verify"] === true)
    throw refusal(
      `${field}.clusters.cluster.insecure-skip-tls-verify`,
      "is not taken: give certificate-authority-data",
    );
  return {
    name,
    apiUrl: new URL(server).href.replace(/\/+$/, ""),
    ca: inlined(cluster, "certificate-authority", `${field}.clusters.cluster`) ?? null,
    credentials: credentialsOf(user, `${field}.users.user`),
  };
}

function credentialsOf(user: Resource, field: string): ClusterCredentials {
  const outside = ["exec", "auth-provider", "tokenFile", "username"].find((member) => user[member] !== undefined);
  const token = textOf(user, "token");
  if (token !== undefined) return { token };
  const certificate = inlined(user, "client-certificate", field);
  const key = inlined(user, "client-key", field);
  if (certificate !== undefined && key !== undefined) return { certificate, key };
  const also = outside === undefined ? "" : `; ${outside} is not taken`;
  throw refusal(field, `must have a token, or client-certificate-data and client-key-data${also}`);
}

function readYaml(text: string, field: string): Resource {
  let parsed: unknown;
  try {
    parsed = parse(text, { maxAliasCount: 0 });
  } catch {
    // What the parser says quotes the text, which holds secrets.
    throw refusal(field, "is not YAML");
  }
  if (!isResource(parsed)) throw refusal(field, "is not a kubeconfig");
  return parsed;
}

function membersNamed(config: Resource, list: string): ReadonlyMap<string, Resource> {
  const members = config[list];
  const named = Array.isArray(members) ? members.filter(isResource) : [];
  return new Map(named.flatMap((member) => (typeof member.name === "string" ? [[member.name, member] as const] : [])));
}

const objectOf = (value: unknown, member: string): Resource | undefined =>
  isResource(value) && isResource(value[member]) ? value[member] : undefined;

function textOf(members: Resource, name: string): string | undefined {
  const value = members[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function inlined(members: Resource, name: string, field: string): string | undefined {
  if (textOf(members, name) !== undefined)
    throw refusal(
      `${field}.${name}`,
      `is a file on your side; give ${name}-data instead (kubectl config view --flatten)`,
    );
  const data = textOf(members, `${name}-data`);
  return data === undefined ? undefined : Buffer.from(data, "base64").toString("utf8");
}

const refusal = (field: string, why: string): AppError =>
  new AppError("invalid_argument", `${field}: ${why}`, { field });
