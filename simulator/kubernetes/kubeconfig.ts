import { stringify } from "yaml";
import type { Cluster } from "./cluster.ts";

const authority = ({ certificate }: Cluster): string => Buffer.from(certificate.cert).toString("base64");

type SignIn = { readonly token: string } | { readonly certificate: string; readonly key: string };

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** What an administrator of the cluster has. It names the TLS side of the API: some clients send tokens nowhere else. */
export const adminKubeconfig = (cluster: Cluster, endpoint: string): string =>
  userKubeconfig(cluster, endpoint, { token: cluster.token });

export const userKubeconfig = (cluster: Cluster, endpoint: string, signIn: SignIn): string =>
  stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: cluster.name,
        cluster: { server: `https://${endpoint}`, "certificate-authority-data": authority(cluster) },
      },
    ],
    users: [
      {
        name: "admin",
        user:
          "token" in signIn
            ? { token: signIn.token }
            : { "client-certificate-data": base64(signIn.certificate), "client-key-data": base64(signIn.key) },
      },
    ],
    contexts: [{ name: "admin", context: { cluster: cluster.name, user: "admin" } }],
    "current-context": "admin",
  });

/** What anybody may know: where the cluster is and who its authority is. */
export const clusterInfoKubeconfig = (cluster: Cluster, endpoint: string): string =>
  stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "", cluster: { server: `https://${endpoint}`, "certificate-authority-data": authority(cluster) } },
    ],
    users: [],
    contexts: [],
    "current-context": "",
  });
