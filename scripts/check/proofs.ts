import { readdir, readFile } from "node:fs/promises";
import { basename, join, normalize } from "node:path";
import { type DeclaredTest, declaredTestsOf } from "./declared-tests.ts";
import type { SourceFile } from "./source-files.ts";

const SPECIFICATIONS = "docs/specs";
const PROOFS = "docs/reference";

/** A page `<name>-proofs.md`, and the specification `<name>.md` that it proves. */
export interface ProofsPage {
  readonly name: string;
  readonly text: string;
  readonly specification: string;
}

/** Which section of a page proves a section of its specification, where they do not have the same name. */
const PROVEN_UNDER: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "bare-metal-api": {
    Machines: "Machine: phases, conditions, effective state",
    Phases: "Machine: phases, conditions, effective state",
    "Conditions and the state that is shown": "Machine: phases, conditions, effective state",
    "Registering and updating": "Services and errors",
    Lists: "Services and errors",
    "Clusters, images and scripts": "Plans",
    "Changing a machine's network": "Step kinds",
    Runs: "Runs and the executor",
    "Finding runs": "Services and errors",
    Watching: "Services and errors",
    "Stopping the server": "Runs and the executor",
  },
};

/** Conditions that hold wherever CI runs with root and apt, although no counterpart is behind them. */
const HOLDS_IN_CI: Readonly<Record<string, string>> = {
  'test/e2e/network-boot.test.ts is left out by its condition typeof kernel === "string"':
    "the test beside it, that a machine can boot from the network here, names what is missing and fails",
};

/** Every specification has its proofs, and every proof is a test that is there and is run. */
export async function findUnproven(root: string, files: readonly SourceFile[]): Promise<string[]> {
  const specifications = (await readdir(join(root, SPECIFICATIONS))).filter((file) => file.endsWith(".md")).sort();
  const read = (path: string) => readFile(join(root, path), "utf8").catch(() => undefined);
  const faults = specifications.map(async (file) => {
    const name = basename(file, ".md");
    const text = await read(`${PROOFS}/${name}-proofs.md`);
    if (text === undefined) return [`${SPECIFICATIONS}/${file} has no ${PROOFS}/${name}-proofs.md`];
    return judgeProofs({ name, text, specification: (await read(`${SPECIFICATIONS}/${file}`)) ?? "" }, files);
  });
  return (await Promise.all(faults)).flat();
}

export function judgeProofs({ name, text, specification }: ProofsPage, files: readonly SourceFile[]): string[] {
  const page = `${PROOFS}/${name}-proofs.md`;
  const sections = new Set(headingsOf(text));
  const unproven = headingsOf(specification)
    .map((heading) => PROVEN_UNDER[name]?.[heading] ?? heading)
    .filter((heading) => !sections.has(heading));
  const testsOf = cached((path) => {
    const file = files.find((each) => each.path === path);
    return file && declaredTestsOf(file);
  });
  return [
    ...unproven.map((heading) => `${page} has no section "${heading}" of ${SPECIFICATIONS}/${name}.md`),
    ...proofsOf(text).flatMap(({ line, proof }) => {
      const fault = judgeProof(proof, testsOf);
      return fault === undefined ? [] : [`${page}:${line} ${fault}`];
    }),
  ];
}

const headingsOf = (text: string): string[] => [...text.matchAll(/^##+ (.+)$/gm)].map(([, heading = ""]) => heading);

/** The cells beside the promises, one for each test that they name. */
function proofsOf(text: string): { line: number; proof: string }[] {
  return text.split("\n").flatMap((row, at) => {
    const [, promise = "", cell = ""] = /^\| (.+?) \| (.+) \|$/.exec(row) ?? [];
    return promise === "" || promise === "Promise" ? [] : cell.split("<br>").map((proof) => ({ line: at + 1, proof }));
  });
}

function judgeProof(proof: string, testsOf: (path: string) => readonly DeclaredTest[] | undefined): string | undefined {
  const [, label, link, title] = /^\[([^\]]+)\]\(([^)]+)\): (.+)$/.exec(proof) ?? [];
  if (label === undefined || link === undefined || title === undefined) return `names no test: ${proof}`;
  const path = normalize(join(PROOFS, link));
  if (label !== basename(path)) return `calls ${path} by another name: ${label}`;
  if (!path.endsWith(".test.ts")) return `names a file that no test run reads: ${path}`;
  const tests = testsOf(path);
  if (tests === undefined) return `names a file that is not there: ${path}`;
  const named = tests.filter(({ titles }) => titles.has(title));
  if (named.length === 0) return `names a test that is not in ${path}: ${title}`;
  const leftOut = named.map((test) => test.leftOut);
  const isRun = leftOut.some((why) => why === undefined || Object.hasOwn(HOLDS_IN_CI, `${path} ${why}`));
  return isRun ? undefined : `names a test of ${path} that ${leftOut[0]}: ${title}`;
}

function cached<Value>(make: (key: string) => Value): (key: string) => Value {
  const made = new Map<string, Value>();
  return (key) => {
    if (!made.has(key)) made.set(key, make(key));
    return made.get(key) as Value;
  };
}
