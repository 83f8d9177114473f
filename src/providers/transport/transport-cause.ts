import { messageOf } from "../../kernel/errors.ts";

/**
 * Why a connection failed, in words that are the same each time it fails so: OpenSSL puts an address in memory into its messages,
 * and the system's may end with the local port.
 */
export function transportCause(error: unknown): string {
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  if (code.startsWith("ERR_SSL_")) return code;
  return messageOf(error).replace(/ - Local \(.*\)$/, "") || code;
}
