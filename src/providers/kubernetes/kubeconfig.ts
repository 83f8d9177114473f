import { createSecureContext } from "node:tls";
import { parse } from "yaml";
import type { ActsAs, ClusterCredentials, ClusterTarget } from "../../capabilities/cluster-target.ts";
import { AppError } from "../../kernel/errors.ts";
import { isResource, type Resource } from "../transport/device-json.ts";

/**
 * What each member of a kubeconfig means here: `taken`, `harmless` (it changes nothing of what we send), or why it is refused. A
 * member that is not listed is refused as well: a kubeconfig that is obeyed in part leads to another place, or as another user.
 */
type Members = Readonly<Record<string, "taken" | "harmless" | { readonly refused: string }>>;

const aFile = (name: string) => ({
  refused: `is a file on your side; give ${name}-data instead (kubectl config view --flatten --minify --raw)`,
});

const CONTEXT_MEMBERS: Members = { cluster: "taken", user: "taken", namespace: "harmless", extensions: "harmless" };
const CLUSTER_MEMBERS: Members = {
  server: "taken",
  "certificate-authority-data": "taken",
  "tls-server-name": "taken",
  "disable-compression": "harmless",
  extensions: "harmless",
  "certificate-authority": aFile("certificate-authority"),
  "insecure-skip-tls-verify": { refused: "is not taken: give certificate-authority-data" },
  "proxy-url": { refused: "is not taken: the server must reach the API itself" },
};
const USER_MEMBERS: Members = {
  token: "taken",
  "client-certificate-data": "taken",
  "client-key-data": "taken",
  as: "taken",
  "as-uid": "taken",
  "as-groups": "taken",
  "as-user-extra": "taken",
  extensions: "harmless",
  "client-certificate": aFile("client-certificate"),
  "client-key": aFile("client-key"),
  tokenFile: { refused: "is a file on your side; give token instead" },
  exec: { refused: "is not taken, since it runs a program; give the token of a service account" },
  "auth-provider": { refused: "is not taken, since it runs a program; give the token of a service account" },
  username: { refused: "is not taken: Kubernetes has no basic authentication any more" },
  password: { refused: "is not taken: Kubernetes has no basic authentication any more" },
};

/**
 * The target that a kubeconfig's current context means. Whatever would run a program or read a file of ours is refused: it comes
 * from outside.
 *
 * @throws AppError invalid_argument that names the member of the file, never its contents.
 */
export function targetOfKubeconfig(name: string, text: string, field = "kubeconfig"): ClusterTarget {
  const config = readYaml(text, field);
  const context = memberOf(contextOf(config, field), "context", CONTEXT_MEMBERS, `${field}.contexts`);
  const entry = (list: "clusters" | "users", member: "cluster" | "user", members: Members): Resource => {
    const wanted = textOf(context, member, `${field}.contexts.context`) ?? "";
    const found = membersNamed(config, list, field).get(wanted);
    if (found === undefined) throw refusal(field, `has no ${member} of the name that its context gives`);
    return memberOf(found, member, members, `${field}.${list}`);
  };
  const cluster = entry("clusters", "cluster", CLUSTER_MEMBERS);
  const user = entry("users", "user", USER_MEMBERS);
  const [clusterField, userField] = [`${field}.clusters.cluster`, `${field}.users.user`];
  const tlsServerName = textOf(cluster, "tls-server-name", clusterField);
  const actsAs = actsAsOf(user, userField);
  const target = {
    name,
    apiUrl: serverOf(cluster, clusterField),
    ca: dataOf(cluster, "certificate-authority-data", clusterField) ?? null,
    credentials: credentialsOf(user, userField),
    ...(tlsServerName !== undefined && { tlsServerName }),
    ...(actsAs !== undefined && { actsAs }),
  };
  checkMaterial(target, { clusterField, userField });
  return target;
}

/** The one that is current; where none is, the only one that there is. */
function contextOf(config: Resource, field: string): Resource {
  const contexts = membersNamed(config, "contexts", field);
  const current = textOf(config, "current-context", field);
  if (current === undefined && contexts.size > 1)
    throw refusal(
      `${field}.current-context`,
      `is required, since there are ${contexts.size} contexts (kubectl config use-context)`,
    );
  const context = current === undefined ? [...contexts.values()][0] : contexts.get(current);
  if (context === undefined)
    throw refusal(field, "names no context that it has: current-context must be one of contexts");
  return context;
}

function serverOf(cluster: Resource, field: string): string {
  const text = textOf(cluster, "server", field) ?? "";
  const server = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = server !== undefined && server.username + server.password + server.search + server.hash === "";
  if (server === undefined || !isPlain || !/^https?:$/.test(server.protocol))
    throw refusal(`${field}.server`, "must be an https address without credentials, such as https://10.0.0.1:6443");
  if (server.protocol === "http:" && !isThisHost(server.hostname))
    throw refusal(`${field}.server`, "must be an https address: over http everybody on the way could read the token");
  return server.href.replace(/\/+$/, "");
}

const isThisHost = (hostname: string): boolean => /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);

function credentialsOf(user: Resource, field: string): ClusterCredentials {
  const token = textOf(user, "token", field);
  const certificate = dataOf(user, "client-certificate-data", field);
  const key = dataOf(user, "client-key-data", field);
  if (token !== undefined && certificate !== undefined)
    throw refusal(field, "has both a token and a client certificate: keep the one that is to be used");
  if (token !== undefined) {
    if (/^[\x21-\x7e]+$/.test(token)) return { token };
    throw refusal(`${field}.token`, "has characters that no token has");
  }
  if (certificate !== undefined && key !== undefined) return { certificate, key };
  throw refusal(field, "must have a token, or client-certificate-data and client-key-data");
}

/** What may stand in a header. */
const HEADER_TEXT = /^[\x20-\x7e]{1,1024}$/;

function actsAsOf(user: Resource, field: string): ActsAs | undefined {
  const name = textOf(user, "as", field);
  const uid = textOf(user, "as-uid", field);
  const groups = textsOf(user["as-groups"], `${field}.as-groups`);
  const extra = extraOf(user["as-user-extra"], `${field}.as-user-extra`);
  if (name === undefined) {
    const alone = [uid, ...groups, ...Object.keys(extra)].some((each) => each !== undefined);
    if (alone) throw refusal(`${field}.as`, "is required where as-uid, as-groups or as-user-extra is given");
    return undefined;
  }
  const texts = [name, ...(uid === undefined ? [] : [uid]), ...groups, ...Object.values(extra).flat()];
  if (!texts.every((each) => HEADER_TEXT.test(each)))
    throw refusal(`${field}.as`, "and what goes with it must be of printable ASCII characters");
  return { user: name, uid: uid ?? null, groups, extra };
}

function extraOf(value: unknown, field: string): Readonly<Record<string, readonly string[]>> {
  if (value === undefined || value === null) return {};
  if (!isResource(value)) throw refusal(field, "must be lists of texts by their names");
  return Object.fromEntries(Object.entries(value).map(([key, values]) => [key, textsOf(values, field)]));
}

function textsOf(value: unknown, field: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw refusal(field, "must be a list of texts");
}

/** What OpenSSL does not take would fail each call, as if nobody answered. */
function checkMaterial({ ca, credentials }: ClusterTarget, at: { clusterField: string; userField: string }): void {
  const isTaken = (material: Parameters<typeof createSecureContext>[0]): boolean => {
    try {
      createSecureContext(material);
      return true;
    } catch {
      return false; // its words may quote the material
    }
  };
  if (ca !== null && !(ca.includes("-----BEGIN CERTIFICATE-----") && isTaken({ ca })))
    throw refusal(`${at.clusterField}.certificate-authority-data`, "is no certificate in PEM, encoded as base64");
  if ("certificate" in credentials && !isTaken({ cert: credentials.certificate, key: credentials.key }))
    throw refusal(
      `${at.userField}.client-certificate-data`,
      "and client-key-data are no certificate and its key in PEM, encoded as base64",
    );
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

/** As kubectl: two of one name are an error, and not the last one of them. */
function membersNamed(config: Resource, list: string, field: string): ReadonlyMap<string, Resource> {
  const members = config[list];
  const named = (Array.isArray(members) ? members : []).filter(isResource);
  const found = new Map<string, Resource>();
  for (const member of named) {
    if (typeof member.name !== "string") continue;
    if (found.has(member.name)) throw refusal(`${field}.${list}`, "has two entries of one name");
    found.set(member.name, member);
  }
  return found;
}

/** What an entry holds, once each of its members is known to be honoured. */
function memberOf(entry: Resource, member: string, members: Members, field: string): Resource {
  const value = entry[member];
  const at = `${field}.${member}`;
  if (!isResource(value)) throw refusal(at, "is missing");
  for (const [name, given] of Object.entries(value)) {
    const meaning = Object.hasOwn(members, name) ? members[name] : { refused: "is not known here, so not taken" };
    // What is empty, or off, asks for nothing.
    const isGiven = given !== null && given !== undefined && given !== "" && given !== false;
    if (typeof meaning === "object" && isGiven) throw refusal(`${at}.${name.slice(0, 80)}`, meaning.refused);
  }
  return value;
}

function textOf(members: Resource, name: string, field: string): string | undefined {
  const value = members[name];
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string") throw refusal(`${field}.${name}`, "must be a text");
  return value;
}

function dataOf(members: Resource, name: string, field: string): string | undefined {
  const data = textOf(members, name, field);
  return data === undefined ? undefined : Buffer.from(data, "base64").toString("utf8");
}

const refusal = (field: string, why: string): AppError =>
  new AppError("invalid_argument", `${field}: ${why}`, { field });
