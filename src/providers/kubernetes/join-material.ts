import { createHash, randomBytes, X509Certificate } from "node:crypto";
import { parse } from "yaml";
import { isResource } from "../transport/device-json.ts";

export interface BootstrapToken {
  readonly id: string;
  readonly secret: string;
}

const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";

/** `[a-z0-9]{6}.[a-z0-9]{16}`, as the cluster demands. */
export function newBootstrapToken(): BootstrapToken {
  const text = randomText(22);
  return { id: text.slice(0, 6), secret: text.slice(6) };
}

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
  metadata: { name: `bootstrap-token-${id}`, namespace: "kube-system" },
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

/** What the cluster publishes about itself: where nodes reach it, and its authority. */
export function readClusterInfo(kubeconfig: string): { readonly endpoint: string; readonly ca: string } | undefined {
  const config: unknown = parse(kubeconfig, { maxAliasCount: 0 });
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

/** As `kubeadm join` wants it: of the public key, not of the certificate, so that it outlives a renewal. */
export function caCertHash(pem: string): string {
  const key = new X509Certificate(pem).publicKey.export({ type: "spki", format: "der" });
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}
