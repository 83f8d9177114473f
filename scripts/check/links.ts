import { access, readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize, relative, sep } from "node:path";

const SKIPPED = new Set(["node_modules", "dist"]);
const LINK = /!?\[(?:[^\][]|\[[^\]]*\])*\]\(<?([^\s)>]+)>?(?:\s+"[^"]*")?\)/g;
const ELSEWHERE = /^([a-z][a-z0-9+.-]*:|\/\/)/i;

export interface MarkdownPage {
  /** From the root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** Relative links of all pages that lead nowhere: to a file that is not there, or to a heading that its page does not have. */
export async function findBrokenLinks(root: string): Promise<string[]> {
  const pages = await readPages(root);
  const exists = (path: string) =>
    access(join(root, path)).then(
      () => true,
      () => false,
    );
  return (await Promise.all(pages.map((page) => judgeLinks(page, { pages, exists })))).flat();
}

export async function judgeLinks(
  page: MarkdownPage,
  { pages, exists }: { readonly pages: readonly MarkdownPage[]; readonly exists: (path: string) => Promise<boolean> },
): Promise<string[]> {
  const faults = linksOf(page.text).map(async ({ line, target }) => {
    if (ELSEWHERE.test(target)) return [];
    const [file = "", heading] = target.split("#", 2);
    const path =
      file === ""
        ? page.path
        : normalize(join(dirname(page.path), decodeURI(file)))
            .split(sep)
            .join("/");
    const at = `${page.path}:${line}: ${target}`;
    if (path.startsWith("../") || !(await exists(path))) return [`${at} leads to no file`];
    const aimed = pages.find((each) => each.path === path);
    if (heading === undefined || aimed === undefined || headingsOf(aimed.text).has(heading)) return [];
    return [`${at} leads to no heading of ${path}`];
  });
  return (await Promise.all(faults)).flat();
}

interface Link {
  readonly line: number;
  readonly target: string;
}

function linksOf(text: string): Link[] {
  return proseOf(text).flatMap((line, at) =>
    [...line.replace(/`[^`]*`/g, "``").matchAll(LINK)].map(([, target = ""]) => ({ line: at + 1, target })),
  );
}

const known = new Map<string, ReadonlySet<string>>();

/** The anchors that GitHub gives to headings. Kept: some pages are linked to a thousand times. */
function headingsOf(text: string): ReadonlySet<string> {
  const found = known.get(text) ?? readHeadings(text);
  known.set(text, found);
  return found;
}

function readHeadings(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const line of proseOf(text)) {
    const title = /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1];
    if (title === undefined) continue;
    const words = title.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = words.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "").replaceAll(" ", "-");
    let unique = anchor;
    for (let again = 1; anchors.has(unique); again += 1) unique = `${anchor}-${again}`;
    anchors.add(unique);
  }
  return anchors;
}

/** The lines of a page, those of code blocks empty. */
function proseOf(text: string): string[] {
  let fence: string | undefined;
  return text.split("\n").map((line) => {
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (fence === undefined) fence = mark;
    else if (mark?.startsWith(fence)) fence = undefined;
    else return "";
    return mark === undefined ? line : "";
  });
}

async function readPages(root: string): Promise<MarkdownPage[]> {
  const paths = (await listPages(root)).sort();
  return Promise.all(
    paths.map(async (path) => ({
      path: relative(root, path).split(sep).join("/"),
      text: await readFile(path, "utf8"),
    })),
  );
}

async function listPages(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const nested = entries.map(async (entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.has(entry.name) || entry.name.startsWith(".") ? [] : listPages(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
  return (await Promise.all(nested)).flat();
}
