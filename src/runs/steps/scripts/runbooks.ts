import { createHash } from "node:crypto";
import type { CauseCode } from "../../../kernel/causes.ts";
import { AppError } from "../../../kernel/errors.ts";

/** A script that `script_ref` names. What runs is decided by the digest, so that a run does not change with a file. */
export interface Runbook {
  readonly ref: string;
  readonly digest: string;
  readonly text: string;
  readonly origin: RunbookOrigin;
  /** The script is another by now, or gone: this is the one that the run was started with. */
  readonly isEarlier?: true;
}

const RUNBOOK_ORIGINS = ["shipped", "site"] as const;
export type RunbookOrigin = (typeof RUNBOOK_ORIGINS)[number];

const REF = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** Scripts travel whole; one that is larger is no script. */
const LARGEST_RUNBOOK = 96 * 1_024;

export const digestOf = (text: string): string => `sha256:${createHash("sha256").update(text, "utf8").digest("hex")}`;

type Files = Readonly<Record<string, string>>;

/** Scripts by name: those that are shipped, and after them the site's, which win, so that it can have its own version of one. */
export class Runbooks {
  readonly #shipped: Files;
  readonly #readSite: (() => Files) | undefined;
  #byRef: ReadonlyMap<string, Runbook> = new Map();
  /** Every version that this process has read: a run goes on with the one that it was started with, whatever the file says by then. */
  readonly #versions = new Map<string, Runbook>();

  /**
   * @param site The site's scripts, or how to read them again.
   * @param earlier Shipped scripts as earlier versions had them: a run that was started then goes on with them.
   */
  constructor(
    shipped: Files,
    site: Files | (() => Files) = {},
    earlier: readonly (readonly [ref: string, text: string])[] = [],
  ) {
    this.#shipped = shipped;
    for (const [ref, text] of earlier) this.#keep(runbook(ref, text, "shipped"));
    this.#readSite = typeof site === "function" ? site : undefined;
    this.#take(typeof site === "function" ? site() : site);
  }

  /** Reads the site's scripts again. @throws Error where they cannot be used; what was read before stays. */
  refresh(): void {
    if (this.#readSite) this.#take(this.#readSite());
  }

  #take(site: Files): void {
    const entries = Object.entries({ shipped: this.#shipped, site }).flatMap(([origin, files]) =>
      Object.entries(files).map(([ref, text]) => [ref, runbook(ref, text, origin as RunbookOrigin)] as const),
    );
    this.#byRef = new Map(entries);
    for (const version of this.#byRef.values()) this.#keep(version);
  }

  #keep(version: Runbook): void {
    this.#versions.set(versionKey(version.ref, version.digest), version);
  }

  /** A version that another process has read: this one need not ask for it again. */
  remember(version: Runbook): void {
    this.#keep(version);
  }

  /** That version of it which the digest names, if this process has read it. */
  findVersion(ref: string, digest: string): Runbook | undefined {
    return this.#versions.get(versionKey(ref, digest));
  }

  get refs(): readonly string[] {
    return [...this.#byRef.keys()].sort();
  }

  find(ref: string): Runbook | undefined {
    return this.#byRef.get(ref);
  }

  /** @throws AppError invalid_argument that names the field and the scripts there are. */
  resolve(ref: string, field: string): Runbook {
    const found = this.#byRef.get(ref);
    if (found !== undefined) return found;
    throw new AppError(
      "invalid_argument",
      `${field}: there is no script ${JSON.stringify(ref)}; known: ${this.refs.join(", ")}`,
      { field },
    );
  }
}

const versionKey = (ref: string, digest: string): string => `${ref} ${digest}`;

/** For people who have changed a script, and wonder why a run does not do what it says now. */
export const earlierNote = ({ isEarlier }: Pick<Runbook, "isEarlier">): string =>
  isEarlier ? " (as it was when the job began; run retry --new-scripts takes the present one)" : "";

/** A playbook runs on our side, with the machine as its inventory; every other script runs on the machine. */
export const isPlaybook = (ref: string): boolean => /\.ya?ml$/.test(ref);

/** Whether a playbook says at its top that carrying it out again is harmless, also after a part of it. */
export const isIdempotent = ({ text }: Pick<Runbook, "text">): boolean =>
  headerOf(text).some((line) => /^# Idempotent: yes\s*$/.test(line));

/** The comment at the top, apart from the line that names the interpreter, or that begins the document. */
function headerOf(text: string): readonly string[] {
  const lines = text.split("\n");
  const first = lines[0]?.startsWith("#!") || lines[0]?.trim() === "---" ? 1 : 0;
  const length = lines.slice(first).findIndex((line) => !line.startsWith("#"));
  return lines.slice(first, length === -1 ? undefined : first + length);
}

/** What the comment at the top says, apart from the line that names the interpreter: what it does, and the variables it takes. */
export function describeRunbook({ text }: Pick<Runbook, "text">): {
  readonly description: string;
  readonly variables: string;
} {
  const header = headerOf(text)
    .map((line) => line.replace(/^#+ ?/, ""))
    .join(" ");
  const [before = "", variables = ""] = header.split(/\bVariables:/);
  const upToMark = (words: string) => words.split(/\b(?:Exit codes|Idempotent):/)[0] ?? "";
  const tidy = (words: string) => upToMark(words).replaceAll(/\s+/g, " ").trim();
  return { description: tidy(before), variables: tidy(variables) };
}

/**
 * Why a script has failed that ended so, by the line `# Exit codes: 75 not_drained` at its top; an exit code that is not named there
 * says no more than that it failed.
 */
export function causeOfExit({ text }: Pick<Runbook, "text">, code: number): ScriptCause {
  const named = /^# Exit codes:(.*)$/m.exec(text)?.[1] ?? EXIT_CODES_OF_LANDED.get(digestOf(text)) ?? "";
  const cause = [...named.matchAll(/(\d+) (\w+)/g)].find(([, number]) => Number(number) === code)?.[2];
  return SCRIPT_CAUSES.find((known) => known === cause) ?? "script_failed";
}

/** The shipped drain_check.sh. A site's own script of that name may check something else. */
export const SHIPPED_DRAIN_CHECK = "sha256:b2cb26bbe5fe16f14c2ac12934826bc01d4cdfcf84a434e8eb6587d1f9584e7e";

/** The shipped drain_node.sh. */
export const SHIPPED_DRAIN_NODE = "sha256:f01d9b8148f32a10bf61337c157ad5f52dfa1fbddf9a285ce09c7663219f7d78";

/**
 * What a shipped script would say at its top. It stays byte for byte as it is: runs in flight were started with its digest, and go on,
 * also on a replica of the version before.
 */
const EXIT_CODES_OF_LANDED: ReadonlyMap<string, string> = new Map([[SHIPPED_DRAIN_CHECK, "1 not_drained"]]);

/** Causes that a script can be the one to name. */
const SCRIPT_CAUSES = ["script_failed", "not_drained"] as const satisfies readonly CauseCode[];
type ScriptCause = (typeof SCRIPT_CAUSES)[number];

/** Whether a plan could name it. */
export const isRunbook = (ref: string, text: string): boolean =>
  REF.test(ref) && Buffer.byteLength(text, "utf8") <= LARGEST_RUNBOOK;

function runbook(ref: string, text: string, origin: RunbookOrigin): Runbook {
  if (!REF.test(ref)) throw new Error(`${JSON.stringify(ref)} is not the name of a script (letters, digits and . _ -)`);
  if (Buffer.byteLength(text, "utf8") > LARGEST_RUNBOOK)
    throw new Error(`the script ${ref} is larger than ${LARGEST_RUNBOOK} bytes`);
  return { ref, text, digest: digestOf(text), origin };
}
