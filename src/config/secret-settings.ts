import { optional, setting } from "./setting.ts";
import * as kinds from "./value-kinds.ts";

/** Where credentials may be kept outside of the database, and be named by role `admin` in place of their values. All of it is off by default. */
export const SECRET_SETTINGS = {
  "secrets.file_roots": setting(kinds.directories(), {
    default: [],
    doc: "Directories below which a credential may be read from a file (`file:/path` in its place, by role `admin`), without symbolic links. Each replica needs the files. Empty: none.",
  }),
  "secrets.env_prefix": setting(kinds.prefix(), {
    default: "",
    doc: "How the names of environment variables begin that a credential may be read from (`env:NAME` in its place, by role `admin`). Empty: none.",
  }),
  "secrets.vault_url": optional(kinds.baseUrl(), {
    doc: "A Vault whose KV store (version 2) credentials may be read from (`vault:mount/path#field` in their place, by role `admin`). Unset: none. `http` is for a Vault agent on this host alone.",
  }),
  "secrets.vault_paths": setting(kinds.vaultPaths(), {
    default: [],
    doc: "Paths, as mount/path, at or below which credentials may be read from the Vault. Empty: none.",
  }),
  "secrets.vault_token_file": optional(kinds.path(), {
    doc: "A file with the token that the Vault is sent; it is read each time, so that a Vault agent may renew it. Or an AppRole: `secrets.vault_role_id`.",
  }),
  "secrets.vault_role_id": optional(kinds.text(), {
    doc: "The AppRole that this server signs in to the Vault as, with `secrets.vault_secret_id_file`.",
  }),
  "secrets.vault_secret_id_file": optional(kinds.path(), { doc: "A file with the secret id of that AppRole." }),
  "secrets.vault_ca_file": optional(kinds.path(), {
    doc: "Authorities (PEM) that vouch for the Vault. Unset: those of the system.",
  }),
} as const;
