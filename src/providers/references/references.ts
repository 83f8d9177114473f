import { LRUCache } from "lru-cache";
import {
  parseReference,
  type SecretReference,
  type SecretReferences,
} from "../../capabilities/secrets/secret-references.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { readVariable } from "./environment.ts";
import { readSecretFile } from "./file.ts";
import { refusedReference } from "./refused-reference.ts";
import { createVault, type VaultSettings } from "./vault.ts";

export interface ReferenceSettings {
  /** Empty: no files. */
  readonly fileRoots: readonly string[];
  /** Empty: no variables. */
  readonly envPrefix: string;
  /** Null: there is none. */
  readonly vault: VaultSettings | null;
}

/** A change elsewhere is seen after so long; a Vault that hangs holds nobody up more often than that. */
const GOOD_FOR = seconds(10);
const MOST_KEPT = 10_000;

interface Kept {
  readonly until: number;
  readonly answer: Promise<string | AppError>;
}

/** Each kind is off until the operator has said from where it may be read. */
export function createSecretReferences(
  { fileRoots, envPrefix, vault: settings }: ReferenceSettings,
  { clock, env = process.env }: { readonly clock: Pick<Clock, "monotonic">; readonly env?: NodeJS.ProcessEnv },
): SecretReferences {
  const vault = settings && createVault(settings, clock);
  const known = new LRUCache<string, Kept>({ max: MOST_KEPT });

  async function read({ kind, at }: SecretReference): Promise<string> {
    if (kind === "env") return readVariable(at, envPrefix, env);
    if (kind === "file") return readSecretFile(at, fileRoots);
    if (vault === null || settings?.paths.length === 0)
      throw refusedReference("references to a Vault are off", "set secrets.vault_url and secrets.vault_paths");
    return vault.read(at);
  }

  async function answerOf(reference: string): Promise<string | AppError> {
    const parsed = parseReference(reference);
    try {
      if (parsed === undefined)
        throw refusedReference("is no reference", "env:NAME, file:/path or vault:mount/path#field");
      const value = await read(parsed);
      return value === "" ? named(reference, refusedReference("is empty", "store the secret there")) : value;
    } catch (error) {
      // Nothing but our own words: those of others may quote what was read.
      return named(
        reference,
        error instanceof AppError ? error : refusedReference("cannot be read", "see where it is kept"),
      );
    }
  }

  return {
    resolve(reference) {
      const now = clock.monotonic();
      const found = known.get(reference);
      if (found && now < found.until) return found.answer;
      const answer = answerOf(reference);
      known.set(reference, { until: now + GOOD_FOR, answer });
      return answer;
    },
  };
}

const named = (reference: string, error: AppError): AppError =>
  new AppError("failed_precondition", `the secret reference ${reference.slice(0, 200)} ${error.message}`, {
    ...(error.detail.next !== undefined && { next: error.detail.next }),
  });
