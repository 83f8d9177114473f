// @module-tag race
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { placeOfBmc } from "../../../src/capabilities/credential-place.ts";
import { AppError } from "../../../src/kernel/errors.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { putBmcCredentials, signInToBmcs } from "../../../src/store/device/bmc-credentials.ts";
import { createTestDatabase } from "../../support/database.ts";

test.each([
  ["no JSON", "hunter2"],
  ["other JSON", '{"username":"root","pass":"hunter2"}'],
])(
  "credentials that are %s are answered with an error that quotes nothing, and spoil no others",
  async (_, damaged) => {
    const { db, drop } = await createTestDatabase();
    const directory = mkdtempSync(join(tmpdir(), "millwright-credentials-"));
    onTestFinished(async () => {
      await drop();
      rmSync(directory, { recursive: true });
    });
    const secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
    const [good, bad] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
    const credentials = { username: "root", password: "p" };
    const target = { address: "192.0.2.1", port: 443, scheme: "https", trust: { mode: "ca" } } as const;
    const place = placeOfBmc({ ...target, trust: "ca" });
    await db.transaction(async (tx) => {
      await putBmcCredentials(tx, secrets, { mac: good, place, ...credentials });
      await secrets.putFor(tx, { name: `bmc/${bad}`, place }, damaged);
    });
    const [first, second, third] = await signInToBmcs(
      db,
      secrets,
      [good, bad, "02:00:00:00:00:03"].map((mac) => ({ mac, target })),
    );
    expect(first).toEqual({ ...target, ...credentials });
    expect(second).toBeInstanceOf(AppError);
    expect(second).toMatchObject({ message: `the credentials for the BMC ${bad} are damaged` });
    expect(inspect(second, { depth: null })).not.toContain("hunter2");
    expect(third).toBeInstanceOf(AppError);
  },
);
