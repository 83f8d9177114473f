import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { root } from "../run-tool.ts";
import { findBreakingChanges } from "./landed-contract.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millwright-contract-"));
  await cp(join(root, "buf.yaml"), join(folder, "buf.yaml"));
  await cp(join(root, "proto"), join(folder, "proto"), { recursive: true });
});
afterEach(() => rm(folder, { recursive: true }));

async function edit(file: string, from: string, to: string): Promise<void> {
  const path = join(folder, "proto", file);
  const text = await readFile(path, "utf8");
  expect(text).toContain(from);
  await writeFile(path, text.replace(from, to));
}

test("a field, a value, a method and a message that are new break nobody", async () => {
  await edit("forge/forge.proto", "bool delete_interfaces = 2;", "bool delete_interfaces = 2;\n  bool forced = 900;");
  await edit("forge/shared.proto", "DO_NOTHING = 3;", "DO_NOTHING = 3;\n  GIVE_UP = 900;");
  await edit("forge/forge.proto", "service Forge {", "service Forge {\n  rpc Sing(Song) returns (Song);");
  await edit(
    "forge/forge.proto",
    "message PowerShelfDeletionResult {}",
    "message PowerShelfDeletionResult {}\nmessage Song {}",
  );
  expect(await findBreakingChanges(folder)).toEqual([]);
});

test.each([
  [
    "another number",
    "forge/forge.proto",
    "bool delete_interfaces = 2;",
    "bool delete_interfaces = 3;",
    /"2".*"delete_interfaces".*deleted/,
  ],
  [
    "another type",
    "forge/forge.proto",
    "bool delete_interfaces = 2;",
    "string delete_interfaces = 2;",
    /"delete_interfaces".*"bool" to "string"/,
  ],
  [
    "another name",
    "forge/forge.proto",
    "bool delete_interfaces = 2;",
    "bool drop_interfaces = 2;",
    /"delete_interfaces" to "drop_interfaces"/,
  ],
  [
    "a value's other number",
    "forge/shared.proto",
    "DO_NOTHING = 3;",
    "DO_NOTHING = 30;",
    /"3".*"ControllerStateOutcome" was deleted/,
  ],
  [
    "a method that is gone",
    "forge/forge.proto",
    "  rpc DeletePowerShelf(PowerShelfDeletionRequest) returns (PowerShelfDeletionResult);\n",
    "",
    /"DeletePowerShelf".*was deleted/,
  ],
])("%s is a fault", async (_, file, from, to, message) => {
  await edit(file, from, to);
  expect((await findBreakingChanges(folder)).join("\n")).toMatch(message);
});
