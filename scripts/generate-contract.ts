import { spawn } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(import.meta.dirname, "..");
const binaries = join(root, "node_modules", ".bin");

/**
 * Writes the code of every contract in `proto/` below `outDir`, which afterwards holds nothing else.
 *
 * Plugins are local, and so is buf's cache, so that the result depends on the checkout alone: no network, no home directory.
 */
export async function generateContract(outDir: string): Promise<void> {
  const cache = await mkdtemp(join(tmpdir(), "millwright-buf-"));
  const scratch = await mkdtemp(join(tmpdir(), "millwright-contract-"));
  const target = resolve(outDir);
  try {
    // buf puts `out` of the template below --output; once by way of a scratch directory, so that a failure leaves the old code.
    await runBuf(["generate", "--output", scratch], cache);
    await rm(target, { recursive: true, force: true });
    await cp(join(scratch, "contract"), target, { recursive: true });
  } finally {
    await rm(cache, { recursive: true, force: true });
    await rm(scratch, { recursive: true, force: true });
  }
}

function runBuf(args: readonly string[], cache: string): Promise<void> {
  return new Promise((done, fail) => {
    const child = spawn(join(binaries, "buf"), args, {
      cwd: root,
      // The plugin is found by name on PATH; it and buf's launcher run on our Node, not on the one that happens to be installed.
      env: { ...process.env, PATH: `${binaries}${delimiter}${process.env.PATH ?? ""}`, BUF_CACHE_DIR: cache },
      stdio: ["ignore", "inherit", "inherit"],
    });
    child.once("error", fail);
    child.once("exit", (code) =>
      code === 0 ? done() : fail(new Error(`buf ${args.join(" ")} ended with code ${code}`)),
    );
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await generateContract(join(root, "contract"));
}
