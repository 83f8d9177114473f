import { readFileSync } from "node:fs";
import type { Config } from "../../config.ts";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { GrpcTls } from "../../providers/rack-manager/grpc-client.ts";
import { createRackManager, type RackManagerClient } from "../../providers/rack-manager/rack-manager.ts";
import { readCaCertificates } from "../ca-certificates.ts";

/**
 * The rack manager of the configuration; undefined where there is none. Only the configuration says where it is: it is told the
 * credentials of BMCs. Its certificates are read once now, so that a mistake ends the start, and again for each connection, since
 * they are renewed while the server runs.
 */
export function wireRackManager({ rackManager }: Pick<Config, "rackManager">): RackManagerClient | undefined {
  const { url, api, caFile, certFile, keyFile } = rackManager;
  if (url === null || api === null) return undefined;
  const tls = (): GrpcTls => ({
    ...(caFile !== null && { ca: readCaCertificates(caFile, "rack_manager.ca_file") }),
    ...(certFile !== null && { cert: readPem(certFile, "rack_manager.cert_file") }),
    ...(keyFile !== null && { key: readPem(keyFile, "rack_manager.key_file") }),
  });
  tls();
  return createRackManager({ url, api, tls });
}

function readPem(file: string, setting: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new AppError("failed_precondition", `${setting}: ${file} cannot be read: ${messageOf(error)}`, {
      field: setting,
      next: "give the path of a file in PEM that the server may read",
    });
  }
}
