import { randomBytes } from "node:crypto";
import { chmod, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TokenVerdict } from "../../services/system/tokens.ts";

export interface DevTokenStore {
  verify(token: string): Promise<TokenVerdict>;
  create(token: {
    readonly name: string;
    readonly roles: readonly string[];
    readonly createdBy: string;
  }): Promise<{ readonly token: string }>;
}

const DEV_CALLER = "dev";

/**
 * The administrator's token of a `millwright dev`, in `<data>/dev-token`: one line, for its owner's eyes only. The command line
 * finds it there by itself. One that still works is kept, so that a restart signs nobody out.
 */
export async function ensureDevToken(
  dataDir: string,
  tokens: DevTokenStore,
): Promise<{ readonly path: string; readonly token: string }> {
  const path = join(dataDir, "dev-token");
  const present = await readToken(path);
  if (present !== undefined) {
    const verdict = await tokens.verify(present);
    if (verdict.status === "valid" && verdict.name === DEV_CALLER && verdict.roles.includes("admin")) {
      await chmod(path, 0o600);
      return { path, token: present };
    }
  }
  const { token } = await tokens.create({ name: DEV_CALLER, roles: ["admin"], createdBy: "millwright dev" });
  await replaceFile(path, `${token}\n`);
  return { path, token };
}

async function readToken(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, "utf8")).trim() || undefined;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** By rename: a reader sees the old token or the new one, never half of it, and never a file that others may read. */
async function replaceFile(path: string, content: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(temporary, content, { mode: 0o600, flag: "wx" });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
