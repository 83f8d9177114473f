import { createHash, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { modeText, othersMayReach } from "../../kernel/access/private-file.ts";
import { AppError } from "../../kernel/errors.ts";

const KEY_BYTES = 32;

export interface SecretKey {
  /** Derived from the key, so that a row says which key it needs and a wrong file is told from a damaged row. */
  readonly id: string;
  /** Prepared once: the cipher takes its time with raw bytes, and a key object never shows them. */
  readonly key: KeyObject;
}

const keyId = (key: Buffer): string =>
  createHash("sha256").update("millwright secret key ").update(key).digest("hex").slice(0, 16);

type SecretKeys = readonly [SecretKey, ...SecretKey[]];

/**
 * The keys in the file, one a line in base64. The database says which of them encrypts (the first, while it says nothing); the others
 * still decrypt what they once encrypted.
 */
export const readOrCreateKeys = (keyFile: string): SecretKeys =>
  parseKeys(keyFile, readPrivateFile(keyFile) ?? createKeyFile(keyFile));

/** The same where a file that is gone is an error, and not a first start. */
export function readKeys(keyFile: string): SecretKeys {
  const text = readPrivateFile(keyFile);
  if (text === undefined) throw unusable(keyFile, "is gone");
  return parseKeys(keyFile, text);
}

function parseKeys(keyFile: string, text: string): SecretKeys {
  const lines = text.split("\n").map((line) => line.trim());
  const [first, ...others] = lines.filter((line) => line !== "").map((line, index) => parseKey(line, index, keyFile));
  if (first === undefined) throw unusable(keyFile, "is empty");
  return [first, ...others];
}

function parseKey(line: string, index: number, keyFile: string): SecretKey {
  const bytes = Buffer.from(line, "base64");
  if (bytes.length !== KEY_BYTES || !/^[A-Za-z0-9+/]{43}=$/.test(line)) {
    throw unusable(keyFile, `has no key of ${KEY_BYTES} bytes in base64 as number ${index + 1}`);
  }
  return { id: keyId(bytes), key: createSecretKey(bytes) };
}

const unusable = (keyFile: string, why: string) =>
  new AppError("failed_precondition", `the secret key file ${keyFile} ${why}`, {
    next: "restore it from its backup: without its key the stored passwords cannot be read",
  });

/** Mode and content are taken from one and the same open file. */
function readPrivateFile(keyFile: string): string | undefined {
  let file: number;
  try {
    file = openSync(keyFile, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new AppError(
      "failed_precondition",
      `the secret key file ${keyFile} cannot be read: ${(error as NodeJS.ErrnoException).code}`,
    );
  }
  try {
    const found = fstatSync(file);
    if (othersMayReach(found, process.getuid?.())) {
      throw new AppError(
        "failed_precondition",
        `the secret key file ${keyFile} has mode ${modeText(found.mode)}: others may reach it, only 0600 or 0400 will do, or 0440 of root for a group of this user`,
        {
          next: `chmod 600 ${keyFile}`,
        },
      );
    }
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

/** Two replicas may start on one empty directory: the link decides whose key it is, and both read that one. */
function createKeyFile(keyFile: string): string {
  mkdirSync(dirname(keyFile), { recursive: true, mode: 0o700 });
  const draft = `${keyFile}.${process.pid}-${randomBytes(4).toString("hex")}`;
  const file = openSync(draft, "wx", 0o600);
  try {
    writeFileSync(file, `${randomBytes(KEY_BYTES).toString("base64")}\n`);
    fsyncSync(file); // a key lost in a crash would take every password with it
    linkSync(draft, keyFile);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    closeSync(file);
    unlinkSync(draft);
  }
  return readPrivateFile(keyFile) ?? "";
}
