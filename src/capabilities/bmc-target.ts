/** How certificates of a BMC are judged: by a CA, by the fingerprint seen first, or not at all. */
export type TlsTrust =
  | { readonly mode: "ca" }
  | { readonly mode: "pin"; readonly fingerprint256?: string }
  | { readonly mode: "off" };

/** Where a BMC is and how to sign in. The password lives in memory for the call only; it is never logged or stored from here. */
export interface BmcTarget {
  readonly address: string;
  readonly port: number;
  /** "http" only for gear that has no TLS. */
  readonly scheme: "https" | "http";
  readonly username: string;
  readonly password: string;
  readonly trust: TlsTrust;
  /** Where many machines stand behind one address: which of them is meant, as the path of its own there. */
  readonly path?: string;
  /** What answers at the address, for messages; "BMC" unless it is something else. */
  readonly noun?: string;
}
