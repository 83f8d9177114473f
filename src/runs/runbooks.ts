import { createHash } from "node:crypto";
import { AppError } from "../kernel/errors.ts";

/** A script that `script_ref` names. What runs is decided by the digest, so that a run does not change with a file. */
export interface Runbook {
  readonly ref: string;
  readonly digest: string;
  readonly text: string;
}

const REF = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** Scripts travel whole; one that is larger is no script. */
export const LARGEST_RUNBOOK = 96 * 1_024;

export const digestOf = (text: string): string => `sha256:${createHash("sha256").update(text, "utf8").digest("hex")}`;

/** Scripts by name. Later sources win, so that a site can have its own version of a shipped one. */
export class Runbooks {
  readonly #byRef: ReadonlyMap<string, Runbook>;

  constructor(...sources: readonly Readonly<Record<string, string>>[]) {
    const entries = sources
      .flatMap((files) => Object.entries(files))
      .map(([ref, text]) => [ref, runbook(ref, text)] as const);
    this.#byRef = new Map(entries);
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

function runbook(ref: string, text: string): Runbook {
  if (!REF.test(ref)) throw new Error(`${JSON.stringify(ref)} is not the name of a script (letters, digits and . _ -)`);
  if (Buffer.byteLength(text, "utf8") > LARGEST_RUNBOOK)
    throw new Error(`the script ${ref} is larger than ${LARGEST_RUNBOOK} bytes`);
  return { ref, text, digest: digestOf(text) };
}
