import { createHash, randomBytes, X509Certificate } from "node:crypto";
import { parse } from "yaml";
import { isResource } from "../transport/device-json.ts";

export interface BootstrapToken {
  readonly id: string;
  readonly secret: string;
}

const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";

/** With the id, `[a-z0-9]{6}.[a-z0-9]{16}`, as the cluster demands. */
export const newBootstrapToken = (id: string): BootstrapToken => ({ id, secret: randomText(16) });

export const secretOfToken = (id: string): string => `bootstrap-token-${id}`;

function randomText(length: number): string {
  let text = "";
  // Bytes beyond the last whole multiple would favour the first letters.
  const limit = 256 - (256 % LETTERS.length);
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < limit && text.length < length) text += LETTERS[byte % LETTERS.length];
    }
  }
  return text;
}

/** The secret by which the cluster knows the token. */
export const bootstrapSecret = ({ id, secret }: BootstrapToken, expiresAt: Date): object => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: secretOfToken(id), namespace: "kube-system" },
  type: "bootstrap.kubernetes.io/token",
  stringData: {
    description: "One join, minted by Millwright.",
    "token-id": id,
    "token-secret": secret,
    expiration: expiresAt.toISOString().replace(/\.\d+Z$/, "Z"),
    "usage-bootstrap-authentication": "true",
    "usage-bootstrap-signing": "true",
    "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
  },
});

/** Where nodes reach the cluster, and by which authority they know it. */
export interface JoinPlace {
  readonly endpoint: string;
  /** PEM. */
  readonly ca: string;
}

/** What the cluster publishes about itself. Undefined for what nobody could join by. */
export function joinPlaceOf(kubeconfig: string): JoinPlace | undefined {
  const config = readYaml(kubeconfig);
  const clusters = isResource(config) && Array.isArray(config.clusters) ? config.clusters : [];
  const first: unknown = clusters[0];
  const cluster = isResource(first) && isResource(first.cluster) ? first.cluster : undefined;
  const server = cluster?.server;
  const ca = cluster?.["certificate-authority-data"];
  if (typeof server !== "string" || !URL.canParse(server) || typeof ca !== "string") return undefined;
  const { hostname, port, protocol } = new URL(server);
  const endpoint = `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;
  return { endpoint, ca: Buffer.from(ca, "base64").toString("utf8") };
}

function readYaml(text: string): unknown {
  try {
    return parse(text, { maxAliasCount: 0 });
  } catch {
    return undefined;
  }
}

/** As `kubeadm join` wants it: of the public key, not of the certificate, so that it outlives a renewal. */
export function caCertHash(pem: string): string {
  const key = new X509Certificate(pem).publicKey.export({ type: "spki", format: "der" });
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}
