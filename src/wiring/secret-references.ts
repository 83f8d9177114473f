import { join, relative } from "node:path";
import type { SecretReferences } from "../capabilities/secrets/secret-references.ts";
import { type Config, isLoopback } from "../config.ts";
import { AppError } from "../kernel/errors.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { createSecretReferences } from "../providers/references/references.ts";
import type { VaultSettings } from "../providers/references/vault.ts";
import { readCaCertificates } from "./ca-certificates.ts";

/** Where credentials may be kept outside of the database, as the configuration says. */
export function wireReferences(config: Config, clock: Clock): SecretReferences {
  const keyFile = config.secretKeyFile ?? join(config.dataDir, "secret-key");
  const root = config.secrets.fileRoots.find((each) => !relative(each, keyFile).startsWith(".."));
  if (root !== undefined)
    throw new AppError("failed_precondition", `secrets.file_roots: ${root} holds the secret key, ${keyFile}`, {
      field: "secrets.file_roots",
      next: "name a directory that holds nothing but credentials",
    });
  return createSecretReferences(
    { fileRoots: config.secrets.fileRoots, envPrefix: config.secrets.envPrefix, vault: vaultOf(config) },
    { clock },
  );
}

function vaultOf({ secrets }: Config): VaultSettings | null {
  const {
    vaultUrl: url,
    vaultPaths: paths,
    vaultTokenFile: tokenFile,
    vaultRoleId: roleId,
    vaultCaFile: caFile,
  } = secrets;
  if (url === null) return null;
  if (tokenFile === null && (roleId === null || secrets.vaultSecretIdFile === null))
    throw new AppError(
      "failed_precondition",
      "secrets.vault_url: needs secrets.vault_token_file, or secrets.vault_role_id with secrets.vault_secret_id_file",
      { field: "secrets.vault_url" },
    );
  if (url.startsWith("http:") && !isLoopback(new URL(url).hostname.replace(/^\[(.*)\]$/, "$1")))
    throw new AppError(
      "failed_precondition",
      "secrets.vault_url: http is for a Vault agent on this host alone; give the https address",
      {
        field: "secrets.vault_url",
      },
    );
  return {
    ...{ url, paths, tokenFile, roleId, secretIdFile: secrets.vaultSecretIdFile },
    ...(caFile !== null && { caCertificates: readCaCertificates(caFile, "secrets.vault_ca_file") }),
  };
}
