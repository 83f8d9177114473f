import { randomBytes } from "node:crypto";
import { closeSync, constants, fstatSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printDone } from "../../terminal/printing.ts";

const KEY_BYTES = 32;

/** Below what is there, where replicas of earlier versions take no notice of it. The file keeps its owner and its mode. */
export async function addKey(session: Session, path: string): Promise<undefined> {
  const file = openKeyFile(path);
  try {
    const content = readFileSync(file, "utf8");
    const isWhole = content === "" || content.endsWith("\n");
    writeSync(file, `${isWhole ? "" : "\n"}${randomBytes(KEY_BYTES).toString("base64")}\n`);
    fsyncSync(file); // what it will encrypt is lost without it
  } finally {
    closeSync(file);
  }
  await printDone(
    session,
    `A new key is in ${path}. Copy the file to each replica and to its backup; then run millwright secrets rotate-key.`,
    { file: path },
  );
}

function openKeyFile(path: string): number {
  let file: number;
  try {
    file = openSync(path, constants.O_RDWR | constants.O_APPEND);
  } catch (error) {
    throw new UsageError(`the key file ${path} cannot be opened: ${(error as NodeJS.ErrnoException).code}`);
  }
  const { mode, size } = fstatSync(file);
  if (size > 0 && (mode & 0o077) === 0) return file;
  closeSync(file);
  throw new UsageError(
    size === 0
      ? `the key file ${path} has no key: the server makes the first one at its first start`
      : `others may reach the key file ${path}; chmod 600 ${path}`,
  );
}
