export type ClusterCredentials =
  | { readonly token: string }
  /** PEM. */
  | { readonly certificate: string; readonly key: string };

/** Where a cluster's API is and how to sign in. Credentials live in memory for the call only. */
export interface ClusterTarget {
  /** As plans name it. */
  readonly name: string;
  /** Without a path: `https://10.0.0.1:6443`. Plain HTTP is for clusters that have no TLS. */
  readonly apiUrl: string;
  /** PEM; null takes the authorities that the system trusts. */
  readonly ca: string | null;
  readonly credentials: ClusterCredentials;
}
