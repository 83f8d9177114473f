import { messageOf } from "../../kernel/errors.ts";

/** Codes that OpenSSL and Node give to a chain or a name they do not accept. */
const NOT_TRUSTED =
  /^(?:ERR_TLS_CERT_ALTNAME_INVALID|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA)/;

/** Whether the other end showed a certificate that is not to be trusted: nothing was sent to it then. */
export const isUntrusted = (error: unknown): boolean =>
  error instanceof Error && "code" in error && typeof error.code === "string" && NOT_TRUSTED.test(error.code);

/**
 * Why a connection failed, in words that are the same each time it fails so: OpenSSL puts an address in memory into its messages,
 * and the system's may end with the local port.
 */
export function transportCause(error: unknown): string {
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  if (code.startsWith("ERR_SSL_")) return code;
  return messageOf(error).replace(/ - Local \(.*\)$/, "") || code;
}
