/** `.ci/run` itself, with stubs for everything that it starts. */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { root } from "../run-tool.ts";

let checkout: string;
const inCheckout = (...names: string[]) => join(checkout, ...names);

/** Two counterparts, each there when its file is. */
const COUNTERPARTS = `
counterparts=("has_frob|frob-server frob-client|a server of frobs" "has_kubectl|kubernetes-client|Kubernetes")
has_frob() { test -e stubs/frob; }
has_kubectl() { test -e stubs/kubectl; }
debian_kubectl=stubs/usr-bin-kubectl
`;

function stub(name: string, script: string): void {
  writeFileSync(inCheckout("stubs", name), `#!/bin/sh\necho "${name} $*" >>stubs/started\n${script}\n`, {
    mode: 0o755,
  });
}

beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), "millwright-ci-"));
  for (const folder of [".ci", "scripts/ci", "stubs"]) mkdirSync(inCheckout(folder), { recursive: true });
  copyFileSync(join(root, ".ci", "run"), inCheckout(".ci", "run"));
  const counterparts = readFileSync(join(root, "scripts", "ci", "counterparts.sh"), "utf8");
  writeFileSync(inCheckout("scripts", "ci", "counterparts.sh"), counterparts + COUNTERPARTS);
  stub("id", "echo 0");
  stub("apt-get", 'case "$*" in *frob-client*) touch stubs/frob;; esac');
  stub("apt-cache", "");
  stub("npm", npmStub("3 passed, 0 failed, 1 skipped"));
  writeFileSync(inCheckout("stubs", "kubectl"), "");
});
afterEach(() => rmSync(checkout, { recursive: true }));

/** The tests write this summary; the check ends with this code. */
const npmStub = (summary: string, { check = 0, tests = 0, ci = 0 } = {}) => `
case "$1" in
  ci) exit ${ci};;
  run) exit ${check};;
  test) printf '${summary}\\n' >"$TEST_SUMMARY_FILE"; echo "counterparts are <$TEST_COUNTERPARTS>"; exit ${tests};;
esac`;

function run() {
  const { status, stdout, stderr } = spawnSync(inCheckout(".ci", "run"), {
    cwd: tmpdir(),
    env: { PATH: `${inCheckout("stubs")}:${process.env.PATH ?? ""}` },
    encoding: "utf8",
  });
  const started = readFileSync(inCheckout("stubs", "started"), "utf8").split("\n");
  return { status, stdout, stderr, last: stdout.trimEnd().split("\n").at(-1), started };
}

test("calls npm as the README tells, and ends with the time of each part and the counts", () => {
  const { status, stdout, last, started } = run();
  expect(started.filter((line) => /^npm /.test(line))).toEqual([
    "npm ci",
    "npm run check",
    expect.stringMatching(/^npm test -- /),
  ]);
  expect(stdout).toMatch(
    /Time\n +\d+ s {2}counterparts\n +\d+ s {2}npm ci\n +\d+ s {2}npm run check\n +\d+ s {2}npm test\n +\d+ s {2}in all\n/,
  );
  expect({ status, last }).toEqual({ status: 0, last: "3 passed, 0 failed, 1 skipped" });
});

test("tells what passed on the second try only, and still ends with the counts", () => {
  stub("npm", npmStub("Passed on the second try only: 1\\n  a.test.ts: one\\n3 passed, 0 failed, 0 skipped"));
  const { status, stdout, last } = run();
  expect(stdout).toContain("\nPassed on the second try only: 1\n  a.test.ts: one\n");
  expect({ status, last }).toEqual({ status: 0, last: "3 passed, 0 failed, 0 skipped" });
});

test.each([
  ["a failed test", "3 passed, 2 failed, 0 skipped", { tests: 1 }, "3 passed, 2 failed, 0 skipped"],
  ["a failed check", "3 passed, 0 failed, 0 skipped", { check: 1 }, "3 passed, 1 failed, 0 skipped"],
  ["both", "3 passed, 2 failed, 0 skipped", { check: 1, tests: 1 }, "3 passed, 3 failed, 0 skipped"],
  ["a test that lacks its counterpart", "3 passed, 1 failed, 0 skipped", {}, "3 passed, 1 failed, 0 skipped"],
  [
    "tests that break after they were counted",
    "3 passed, 0 failed, 0 skipped",
    { tests: 1 },
    "3 passed, 1 failed, 0 skipped",
  ],
])("%s fails the run, and is counted", (_, summary, codes, counts) => {
  stub("npm", npmStub(summary, codes));
  const { status, last } = run();
  expect({ status, last }).toEqual({ status: 1, last: counts });
});

test("without its packages there is nothing to check or to test", () => {
  stub("npm", npmStub("", { ci: 1 }));
  const { status, stdout, last, started } = run();
  expect(started.filter((line) => /^npm /.test(line))).toEqual(["npm ci"]);
  expect(stdout).toContain("Failed: npm ci\n");
  expect({ status, last }).toEqual({ status: 1, last: "0 passed, 1 failed, 0 skipped" });
});

test("tests that break before they are counted are one failure", () => {
  stub("npm", 'if [ "$1" = test ]; then exit 1; fi');
  const { status, last } = run();
  expect({ status, last }).toEqual({ status: 1, last: "0 passed, 1 failed, 0 skipped" });
});

describe("a counterpart that is missing", () => {
  test("is installed where there are root and apt, and its tests may not be skipped then", () => {
    const { status, stdout, started } = run();
    expect(started).toContainEqual(expect.stringMatching(/^apt-get .* install .*frob-server frob-client$/));
    expect(stdout).toContain("counterparts are <required>");
    expect(stdout).not.toContain("Not installed");
    expect(status).toBe(0);
    expect(started).not.toContainEqual(expect.stringMatching(/^apt-get .* update$/));
  });

  test("is looked for in fresh lists where apt knows nothing yet", () => {
    stub("apt-cache", "exit 100");
    expect(run().started).toContainEqual(expect.stringMatching(/^apt-get .* update$/));
  });

  test("fails the run by name when it cannot be installed, though everything else is installed and run", () => {
    stub("apt-get", 'case "$*" in *kubernetes-client*) exit 100;; *frob-client*) touch stubs/frob;; esac');
    rmSync(inCheckout("stubs", "kubectl"));
    const { status, stdout, last } = run();
    expect(existsSync(inCheckout("stubs", "frob"))).toBe(true);
    expect(stdout).toContain("Not installed: kubernetes-client (Kubernetes)\n");
    expect(stdout).toContain("Failed: counterparts\n");
    expect({ status, last }).toEqual({ status: 1, last: "3 passed, 1 failed, 1 skipped" });
  });

  test("is told, and skipped, where it takes root to install it", () => {
    stub("id", "echo 1000");
    const { status, stdout, last, started } = run();
    expect(started.filter((line) => /^apt-get /.test(line))).toEqual([]);
    expect(stdout).toContain("counterparts are <>");
    expect(stdout).toContain("Not installed: frob-server frob-client (a server of frobs)\n");
    expect({ status, last }).toEqual({ status: 0, last: "3 passed, 0 failed, 1 skipped" });
  });

  test("is never installed over a kubectl of another origin", () => {
    rmSync(inCheckout("stubs", "kubectl"));
    writeFileSync(inCheckout("stubs", "usr-bin-kubectl"), "");
    const { status, stdout, started } = run();
    expect(started.filter((line) => line.includes("kubernetes-client"))).toEqual([]);
    expect(stdout).toContain("not installed over stubs/usr-bin-kubectl");
    expect(status).toBe(1);
  });
});
