import type { ConnectionOptions } from "./connect.ts";
import { readTextFile } from "./discover-server.ts";
import { UsageError } from "./errors.ts";
import type { TlsFiles } from "./http-client.ts";

/** What the options name, read. */
export function tlsFiles({
  caFile,
  clientCert,
  clientKey,
}: Pick<ConnectionOptions, "caFile" | "clientCert" | "clientKey">): TlsFiles {
  if ((clientCert === undefined) !== (clientKey === undefined)) {
    throw new UsageError("--client-cert and --client-key belong together");
  }
  return {
    ...(caFile === undefined ? {} : { ca: mustRead(caFile, "--ca-file") }),
    ...(clientCert === undefined ? {} : { cert: mustRead(clientCert, "--client-cert") }),
    ...(clientKey === undefined ? {} : { key: mustRead(clientKey, "--client-key") }),
  };
}

function mustRead(path: string, field: string): string {
  const text = readTextFile(path);
  if (text === undefined) throw new UsageError(`${field}: ${path} does not exist`);
  return text;
}
