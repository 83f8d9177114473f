/** How one signs in. Lives in memory for the call only; it is never logged or stored from here. */
export type SshCredentials =
  | {
      /** In any form that OpenSSH writes, without a passphrase. */
      readonly privateKey: string;
    }
  | { readonly password: string };

/** A host on the way. Its key must be known before anything is sent: what it forwards is no safer than itself. */
export interface SshJump {
  readonly address: string;
  readonly port: number;
  readonly username: string;
  /** As in known_hosts: type and key; or its fingerprint. */
  readonly hostKey: string;
}

/** Where a machine's SSH server is, who it must be, and how to sign in. Jump hosts take the same credentials. */
export interface SshTarget {
  readonly address: string;
  readonly port: number;
  readonly username: string;
  readonly credentials: SshCredentials;
  /**
   * The key that it must show, as in known_hosts: type and key; or its fingerprint. Null takes any key: only with a private key,
   * which nobody in between can use, and never with a password, which they could keep.
   */
  readonly hostKey: string | null;
  /** The nearest to us first. */
  readonly jumpHosts: readonly SshJump[];
}
