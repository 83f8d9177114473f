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

test("every part of the specification has proofs", () => {
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
