import { expect, test } from "vitest";
import { loadConfig } from "../../../src/config.ts";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import { wireReferences } from "../../../src/wiring/secret-references.ts";

const wire = (settings: Readonly<Record<string, string>>) => {
  const env = { MILLWRIGHT_DATA_DIR: "/srv/millwright", ...settings };
  return wireReferences(loadConfig({ env, argv: [], profile: "serve" }).config, systemClock);
};

test("directories, a prefix and a Vault of one's own are taken", () => {
  wire({
    MILLWRIGHT_SECRETS_FILE_ROOTS: "/etc/credentials,/run/secrets/",
    MILLWRIGHT_SECRETS_ENV_PREFIX: "SITE_",
    MILLWRIGHT_SECRETS_VAULT_URL: "https://vault.example:8200",
    MILLWRIGHT_SECRETS_VAULT_PATHS: "secret/bmc,kv",
    MILLWRIGHT_SECRETS_VAULT_TOKEN_FILE: "/run/vault/token",
  });
});

test.each([
  ["the directory of the secret key", { SECRETS_FILE_ROOTS: "/srv/millwright" }],
  ["a directory above it", { SECRETS_FILE_ROOTS: "/etc/x,/srv" }],
  ["everything", { SECRETS_FILE_ROOTS: "/" }],
  ["a relative directory", { SECRETS_FILE_ROOTS: "etc" }],
  ["a directory over ..", { SECRETS_FILE_ROOTS: "/etc/../srv/x" }],
  ["the prefix of the server's own settings", { SECRETS_ENV_PREFIX: "MILLWRIGHT_" }],
  ["one that its database URL has", { SECRETS_ENV_PREFIX: "MILL" }],
  ["a short prefix", { SECRETS_ENV_PREFIX: "A" }],
  ["a Vault without credentials", { SECRETS_VAULT_URL: "https://vault.example" }],
  ["a Vault over plain HTTP", { SECRETS_VAULT_URL: "http://vault.example", SECRETS_VAULT_TOKEN_FILE: "/t" }],
  ["a path of a Vault over ..", { SECRETS_VAULT_PATHS: "secret/../sys" }],
])("%s is refused", (_, given) => {
  const settings = Object.fromEntries(Object.entries(given).map(([name, value]) => [`MILLWRIGHT_${name}`, value]));
  expect(() => wire(settings)).toThrow(/secrets\./);
});
