import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadConfig } from "./load.ts";
import { SETTINGS } from "./settings.ts";
import { warnOfStricterDefaults } from "./stricter-defaults.ts";

const CHANGELOG = readFileSync(join(import.meta.dirname, "..", "..", "CHANGELOG.md"), "utf8");

/** What became stricter since the last version, an entry each. */
const entries = (/^## Unreleased\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(CHANGELOG)?.[1] ?? "")
  .split(/^- /m)
  .filter((entry) => entry.includes("Stricter: "))
  .map((entry) => entry.slice(entry.indexOf("Stricter: ")).replaceAll(/\s+/g, " "));

/** A site that listens for others and has an identity provider: each warning that an upgrade may bring. */
function warnings(): string {
  const env = {
    MILLWRIGHT_DATA_DIR: "/tmp",
    MILLWRIGHT_HTTP_LISTEN: "0.0.0.0:8080",
    MILLWRIGHT_AUTH_OIDC_ISSUER: "https://id.example",
    MILLWRIGHT_AUTH_OIDC_AUDIENCE: "millwright",
    MILLWRIGHT_AUTH_OIDC_JWKS_URL: "https://id.example/keys",
    MILLWRIGHT_AUTH_OIDC_ROLES: JSON.stringify({ staff: ["operator"] }),
  };
  const loaded = loadConfig({ env, argv: [], profile: "serve" });
  return [...loaded.warnings, ...warnOfStricterDefaults(loaded)].join("\n");
}

test("the list has such entries", () => expect(entries.length).toBeGreaterThan(10));

test.each(entries.map((entry) => [entry.slice(0, 90), entry] as const))("%s", (_, entry) => {
  const settings = Object.keys(SETTINGS).filter((key) =>
    new RegExp(`\`${key.replaceAll(".", "\\.")}[\`:]`).test(entry),
  );
  if (/no setting restores/i.test(entry)) return;
  if (settings.length === 0)
    expect(entry, "names a setting, or the command that helps").toMatch(/`millwright |`literal:/);
  else
    expect(
      settings.some((key) => warnings().includes(key)),
      `config check warns of ${settings.join(" or ")}`,
    ).toBe(true);
});
