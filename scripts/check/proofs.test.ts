import { readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
const PAGE = "docs/reference/bare-metal-api-proofs.md";

/** The rows of the page: what is promised, and the tests that are named for it. */
function readProofs(): { readonly promise: string; readonly file: string; readonly title: string }[] {
  const rows = readFileSync(join(ROOT, PAGE), "utf8").matchAll(/^\| (?!Promise)(.+?) \| (.+) \|$/gm);
  return [...rows].flatMap(([, promise = "", proofs = ""]) =>
    proofs.split("<br>").map((proof) => {
      const [, path = "", title = ""] = /^\[[^\]]+\]\(([^)]+)\): (.+)$/.exec(proof) ?? [];
      return { promise, file: normalize(join("docs/reference", path)), title };
    }),
  );
}

const proofs = readProofs();

/** Which section of the page proves a section of the specification, where they do not have the same name. */
const PROVEN_UNDER: Readonly<Record<string, string>> = {
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
};
const headingsOf = (page: string): string[] =>
  [...readFileSync(join(ROOT, page), "utf8").matchAll(/^##+ (.+)$/gm)].map(([, heading = ""]) => heading);

test("every section of the specification has proofs", () => {
  const sections = headingsOf("docs/specs/bare-metal-api.md").map((heading) => PROVEN_UNDER[heading] ?? heading);
  expect(sections.filter((section) => !headingsOf(PAGE).includes(section))).toEqual([]);
  expect(proofs.length).toBeGreaterThan(100);
});

test.each(proofs.map(({ promise, file, title }) => [file, title, promise] as const))(
  "%s has a test titled %j",
  (file, title, promise) => {
    const source = readFileSync(join(ROOT, file), "utf8");
    const spellings = [`"${title}"`, `'${title}'`, `\`${title}\``, JSON.stringify(title)];
    expect(
      spellings.some((spelling) => source.includes(spelling)),
      `${PAGE} names it as the proof of: ${promise}`,
    ).toBe(true);
  },
);
