import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentIdentity } from "./server-calls.ts";

/** Tasks that are remembered: what was signed for an older one has expired long since. */
const MOST_BEGUN = 200;

/** What the agent keeps between its starts: who it is, and which tasks it has begun. */
export class AgentDisk {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  identity(): AgentIdentity | undefined {
    return this.#read("identity.json") as AgentIdentity | undefined;
  }

  keepIdentity(identity: AgentIdentity): void {
    this.#write("identity.json", identity);
  }

  /** By which an enrolment whose answer was lost is asked for again, also after a restart. */
  nonce(make: () => string): string {
    const kept = this.#read("nonce.json");
    if (typeof kept === "string") return kept;
    const made = make();
    this.#write("nonce.json", made);
    return made;
  }

  begun(): ReadonlySet<string> {
    const kept = this.#read("begun.json");
    return new Set(Array.isArray(kept) ? (kept as string[]) : []);
  }

  /** Before anything of it is done. */
  noteBegun(task: string): void {
    this.#write("begun.json", [...this.begun(), task].slice(-MOST_BEGUN));
  }

  forget(): void {
    for (const name of ["identity.json", "nonce.json", "begun.json"])
      rmSync(join(this.#directory, name), { force: true });
  }

  #read(name: string): unknown {
    try {
      return JSON.parse(readFileSync(join(this.#directory, name), "utf8"));
    } catch {
      return undefined;
    }
  }

  #write(name: string, value: unknown): void {
    const path = join(this.#directory, name);
    writeFileSync(`${path}.new`, JSON.stringify(value), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
}
