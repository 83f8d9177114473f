import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { SeedFormat, SeedInput } from "../../../src/capabilities/seeds/seed.ts";
import { seedWriter } from "../../../src/providers/seeds/seed.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { newKey } from "../../support/counterparts/openssh-server.ts";
import { findSeedReaders, type SeedReaders } from "../../support/counterparts/seed-readers.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** The programs that installers read seeds with, on what we write for them. */
const found = findSeedReaders();
const missing = typeof found === "string" ? found : "";
const readers = found as SeedReaders;
const { privateKey } = newKey();
const STAMP = "/etc/millwright-image";
const THEIRS = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFiCnEEZ5lJBXV7Zo6xwxn6wYVj6Zq1Xl6y8kq8yXlAa";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "millwright-seeds-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

interface Written {
  readonly key: string;
  /** Of one of its files. */
  path(name: string): string;
}

function write(format: SeedFormat, username: string, document: string | null): Written {
  const signIn = seedWriter.signInOf({ username, privateKey });
  const input: SeedInput = {
    ...{ format, machineId: "m-1", instanceId: "run-1-a", document, signIn },
    stamp: { path: STAMP, text: "image=ubuntu\ntoken=t1\n" },
    phoneHome: "http://10.0.0.1:8080/phone-home",
  };
  const seed = mkdtempSync(join(directory, "seed-"));
  for (const { name, content } of seedWriter.filesOf(input)) writeFileSync(join(seed, name), content);
  return { key: signIn?.publicKey ?? "", path: (name) => join(seed, name) };
}

describe.skipIf(missing !== "")(needing("cloud-init", missing), () => {
  const ofCloud = (username: string, document: string | null, defaultUser = "debian") => {
    const seed = write("nocloud", username, document);
    expect(readers.cloudConfigFaults(seed.path("user-data"))).toBe("");
    const read = readers.readCloudConfig(seed.path(""), defaultUser);
    expect(read).toMatchObject({ instance: "run-1-a", files: expect.arrayContaining([STAMP]) });
    return { ...read, key: seed.key };
  };

  test("lets in who signs in as root", () => {
    const { key, keys } = ofCloud("root", `#cloud-config\nssh_authorized_keys: ["${THEIRS}"]\n`);
    expect(keys).toEqual([THEIRS, key]);
  });

  test("makes the account that signs in, beside the distribution's own", () => {
    const { key, users } = ofCloud("ops", null);
    expect(users).toMatchObject({ ops: { ssh_authorized_keys: [key] }, debian: { default: true } });
  });

  test("lets in who signs in as the distribution's own user", () => {
    const { key, users } = ofCloud("debian", null);
    expect(users).toMatchObject({ debian: { default: true, ssh_authorized_keys: [key] } });
  });

  test.each([
    ["a list", `users: [default, { name: ops, groups: [wheel], ssh_authorized_keys: ["${THEIRS}"] }]`],
    ["a list with dashes", `users: [default, { name: ops, groups: [wheel], ssh-authorized-keys: ["${THEIRS}"] }]`],
    ["a mapping", `users: { default: true, ops: { groups: [wheel], ssh_authorized_keys: ["${THEIRS}"] } }`],
  ])("lets in who signs in as an account that the document makes, as it makes it: %s", (_how, users) => {
    const read = ofCloud("ops", `#cloud-config\n${users}\n`);
    expect(read.users).toMatchObject({
      ops: { groups: ["wheel"], ssh_authorized_keys: [THEIRS, read.key] },
      debian: { default: true },
    });
  });

  test.each([
    ["a text", "users: a, b"],
    ["names", "users: [a, b]"],
    ["a mapping", "users: { a: { groups: [wheel] }, b: true }"],
  ])("makes the other accounts of the document too: %s", (_how, users) => {
    const read = ofCloud("ops", `#cloud-config\n${users}\n`);
    expect(Object.keys(read.users).sort()).toEqual(["a", "b", "ops"]);
    expect(read.users.ops?.ssh_authorized_keys).toEqual([read.key]);
  });

  test("reads what is written for Ubuntu's installer", () => {
    const document =
      "#cloud-config\nautoinstall: { version: 1, identity: { username: ops, hostname: h, password: x } }\n";
    expect(readers.cloudConfigFaults(write("autoinstall", "ops", document).path("user-data"))).toBe("");
  });
});

describe.skipIf(missing !== "")(needing("Ignition", missing), () => {
  test.each([
    ["no document", null],
    [
      "a document that has the account and the file already",
      JSON.stringify({
        ignition: { version: "3.3.0" },
        passwd: { users: [{ name: "core", groups: ["wheel"], sshAuthorizedKeys: [THEIRS] }] },
        storage: { files: [{ path: STAMP, contents: { source: "data:,of%20another" } }] },
      }),
    ],
  ])("has nothing against a seed with %s", (_what, document) => {
    expect(readers.ignitionFaults(write("ignition", "core", document).path("config.ign"))).toBe("");
  });
});
