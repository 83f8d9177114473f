export type ClusterCredentials =
  | { readonly token: string }
  /** PEM. */
  | { readonly certificate: string; readonly key: string };

/** Whom the API takes us for after the sign-in: Kubernetes' impersonation. */
export interface ActsAs {
  readonly user: string;
  readonly uid: string | null;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Where a cluster's API is and how to sign in. Credentials live in memory for the call only. */
export interface ClusterTarget {
  /** As plans name it. */
  readonly name: string;
  /** Without a slash at its end: `https://10.0.0.1:6443`. Plain HTTP is for an API on this host alone. */
  readonly apiUrl: string;
  /** PEM; null takes the authorities that the system trusts. */
  readonly ca: string | null;
  readonly credentials: ClusterCredentials;
  /** The name that the API's certificate must have. Absent: the host in `apiUrl`. */
  readonly tlsServerName?: string;
  /** Absent: the user that signs in. */
  readonly actsAs?: ActsAs;
}
