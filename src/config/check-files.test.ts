import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { checkFiles } from "./check-files.ts";
import { loadConfig } from "./load.ts";

const directory = mkdtempSync(join(tmpdir(), "millwright-config-"));
afterAll(() => rmSync(directory, { recursive: true }));
const file = (name: string, mode: number) => {
  const path = join(directory, name);
  writeFileSync(path, "");
  chmodSync(path, mode);
  return path;
};
const check = (...argv: string[]) =>
  checkFiles(loadConfig({ env: {}, argv: ["--data-dir", directory, ...argv], profile: "serve" }));

test("files that are there, and those that the first start makes, are fine", () => {
  const [cert, key] = [file("cert", 0o644), file("key", 0o600)];
  expect(
    check("--tls-cert-file", cert, "--tls-key-file", key, "--secret-key-file", join(directory, "to-come")),
  ).toEqual({ problems: [], warnings: [] });
});

test("a file that is missing, or is none, is named with its setting and where that was given", () => {
  const key = file("key", 0o600);
  const missing = join(directory, "missing");
  expect(check("--tls-cert-file", missing, "--tls-key-file", key).problems).toEqual([
    `tls.cert_file (flag --tls-cert-file): there is no ${missing}`,
  ]);
  expect(check("--bmc-ca-file", directory).problems).toEqual([
    `bmc.ca_file (flag --bmc-ca-file): ${directory} is a directory, and a file is wanted`,
  ]);
});

test("a secret key that others may reach is refused, and a TLS key warned of", () => {
  const open = file("open", 0o640);
  expect(check("--secret-key-file", open).problems).toEqual([
    `secret_key_file (flag --secret-key-file): ${open} has mode 0640, so that others may reach it; chmod 600 ${open}`,
  ]);
  expect(check("--tls-key-file", open, "--tls-cert-file", open)).toEqual({
    problems: [],
    warnings: [expect.stringContaining("tls.key_file (flag --tls-key-file)")],
  });
});

test("a data directory that is a file is refused, and one that is yet to be made is not", () => {
  const path = file("no-directory", 0o600);
  const problems = (dataDir: string) => checkFiles(loadConfig({ env: {}, argv: ["--data-dir", dataDir] })).problems;
  expect(problems(path)).toEqual([`data_dir (flag --data-dir): ${path} is not a directory`]);
  expect(problems(join(directory, "new"))).toEqual([]);
  mkdirSync(join(directory, "new"));
  expect(problems(join(directory, "new"))).toEqual([]);
});

test("where a directory is wanted, a directory is fine, and a file or nothing is not", () => {
  const path = file("a-file", 0o600);
  const missing = join(directory, "missing");
  for (const flag of ["scripts-directory", "install-files-dir"]) {
    expect(check(`--${flag}`, directory), flag).toEqual({ problems: [], warnings: [] });
    expect(check(`--${flag}`, path).problems).toEqual([expect.stringContaining(`${path} is not a directory`)]);
    expect(check(`--${flag}`, missing).problems).toEqual([expect.stringContaining(`there is no ${missing}`)]);
  }
});
