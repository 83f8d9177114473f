// @module-tag race
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../src/kernel/errors.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { getBmcCredentials, putBmcCredentials } from "../../../src/store/device/bmc-credentials.ts";
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
    await db.transaction(async (tx) => {
      await putBmcCredentials(tx, secrets, good, credentials);
      await secrets.put(tx, `bmc/${bad}`, damaged);
    });
    const [first, second, third] = await getBmcCredentials(db, secrets, [good, bad, "02:00:00:00:00:03"]);
    expect(first).toEqual(credentials);
    expect(second).toBeInstanceOf(AppError);
    expect(second).toMatchObject({ message: `the credentials for the BMC ${bad} are damaged` });
    expect(inspect(second, { depth: null })).not.toContain("hunter2");
    expect(third).toBeInstanceOf(AppError);
  },
);
