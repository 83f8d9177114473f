import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createTestDatabase } from "../../support/database.ts";
import { ROOT } from "../../support/processes/process-bench.ts";

const PROGRAM = join(ROOT, "test", "support", "floods", "out-of-files.ts");

test("a server that has no descriptors left says so, and blames neither the device nor the database", async () => {
  const database = await createTestDatabase();
  try {
    const limited = `ulimit -n 128 && exec "$0" "$@"`;
    const args = ["-c", limited, join(ROOT, "bin", "node"), PROGRAM, database.url];
    const { stdout } = await promisify(execFile)("bash", args);
    const message = expect.stringContaining(
      "this server has as many files and connections open as its process may have",
    );
    expect(JSON.parse(stdout)).toEqual([
      { code: "server_trouble", message },
      { code: "unavailable", message },
    ]);
  } finally {
    await database.drop();
  }
});
