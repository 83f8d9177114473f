import { constants, realpathSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { isAbsolute, normalize, sep } from "node:path";
import { refusedReference } from "./refused-reference.ts";

export const LONGEST_SECRET = 256 * 1_024;

/**
 * A file below a directory that the operator gave free. No part of its path may be a link: who can write there could lead the server to any
 * file that it can read.
 */
export async function readSecretFile(path: string, roots: readonly string[]): Promise<string> {
  if (roots.length === 0) throw refusedReference("references to files are off", "set secrets.file_roots");
  if (!isAbsolute(path) || normalize(path) !== path || path.includes("\0"))
    throw refusedReference(
      "is no plain absolute path",
      'such as file:/etc/millwright/secrets/bmc, without "..", "." or "//"',
    );
  if (!roots.some((root) => isBelow(path, realRoot(root))))
    throw refusedReference("is below no directory of secrets.file_roots", "put the file there, or add its directory");
  const file = await openPlain(path);
  try {
    // The file that was opened, and not what the path leads to by now.
    if (realpathSync(`/proc/self/fd/${file.fd}`) !== path)
      throw refusedReference("is reached over a symbolic link", "give the path of the file itself");
    const { size } = await checkRegular(file);
    if (size > LONGEST_SECRET)
      throw refusedReference(`is longer than ${LONGEST_SECRET} bytes`, "give a file that holds the secret alone");
    return (await file.readFile("utf8")).replace(/\r?\n$/, "");
  } finally {
    await file.close();
  }
}

const isBelow = (path: string, root: string): boolean => path.startsWith(root.endsWith(sep) ? root : root + sep);

/** The operator may have given a link as root: what is meant is the directory behind it. */
function realRoot(root: string): string {
  try {
    return realpathSync(root);
  } catch {
    return root;
  }
}

async function openPlain(path: string): Promise<FileHandle> {
  try {
    // Without O_NONBLOCK a pipe would hold the call until somebody writes to it.
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    const why = code === "ELOOP" ? "is a symbolic link" : `cannot be read: ${code}`;
    throw refusedReference(why, "the account of the server must be able to read the file, on each replica");
  }
}

async function checkRegular(file: FileHandle): Promise<{ readonly size: number }> {
  const stat = await file.stat();
  if (stat.isFile()) return stat;
  throw refusedReference("is no ordinary file", "give the path of a file");
}
