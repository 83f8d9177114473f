import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeBuild, readBuild } from "./build.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "millwright-build-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

function aRoot(name: string, manifest: object): string {
  const root = join(directory, name);
  mkdirSync(join(root, "migrations"), { recursive: true });
  writeFileSync(join(root, "package.json"), JSON.stringify(manifest));
  for (const file of ["0002_second.sql", "0001_first.sql", "landed.json"]) {
    writeFileSync(join(root, "migrations", file), "");
  }
  return root;
}

const git = (root: string, ...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: root, encoding: "utf8" }).trim();

test("a package says its commit itself", () => {
  const root = aRoot("package", { version: "1.2.3", commit: "0123456789abcdef" });
  expect(readBuild(root)).toEqual({ version: "1.2.3", commit: "0123456789abcdef", schema: "0002" });
  expect(describeBuild(readBuild(root))).toBe("1.2.3 (commit 0123456789ab, schema 0002)");
});

test("without a commit it says so", () => {
  const root = aRoot("nothing", { version: "1.2.3" });
  expect(describeBuild(readBuild(root))).toBe("1.2.3 (commit unknown, schema 0002)");
});

test("a checkout, packed or detached or a worktree, is at the commit that git names", () => {
  const root = aRoot("checkout", { version: "1.2.3" });
  git(root, "init", "--quiet");
  git(root, "add", ".");
  git(root, "commit", "--quiet", "-m", "first");
  const commit = git(root, "rev-parse", "HEAD");
  expect(readBuild(root).commit).toBe(commit);
  git(root, "pack-refs", "--all");
  expect(readBuild(root).commit).toBe(commit);
  const worktree = join(directory, "worktree");
  git(root, "worktree", "add", "--quiet", worktree, "-b", "elsewhere");
  expect(readBuild(worktree).commit).toBe(commit);
  git(root, "checkout", "--quiet", "--detach");
  expect(readBuild(root).commit).toBe(commit);
});
