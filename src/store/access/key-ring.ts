import { AppError } from "../../kernel/errors.ts";
import { open, type SecretRow } from "./sealing.ts";
import { readKeys, readOrCreateKeys, type SecretKey } from "./secret-key-file.ts";

/** The keys in the file of this replica, and which of them encrypts. */
export interface KeyRing {
  readonly keyFile: string;
  /** The one that encrypts and signs: as the database says, or the first one in the file while it says nothing. */
  current(): SecretKey;
  all(): readonly SecretKey[];
  find(keyId: string): SecretKey | undefined;
  /** The key of that name encrypts from now on. One that is not here is looked for in the file before that is an error. */
  follow(keyId: string): SecretKey;
  /** Reads the file again: a key that was added is here from now on. A file that cannot be used changes nothing. */
  reload(): void;
  decrypt(row: SecretRow): string | AppError;
}

/** Makes the key file when there is none. */
export function openKeyRing(keyFile: string): KeyRing {
  let keys = readOrCreateKeys(keyFile);
  let [current] = keys;
  const find = (keyId: string) => keys.find(({ id }) => id === keyId);

  function reload(): void {
    keys = readKeys(keyFile);
    current = find(current.id) ?? current; // it goes on with what it has until the database names another
  }

  return {
    keyFile,
    current: () => current,
    all: () => keys,
    find,
    reload,
    follow(keyId) {
      if (keyId === current.id) return current;
      if (find(keyId) === undefined) reload();
      const named = find(keyId);
      if (named === undefined) throw missing(`secrets are encrypted with key ${keyId} now`, keyFile);
      current = named;
      return current;
    },
    decrypt(row) {
      const key = row.key_id === current.id ? current : find(row.key_id);
      return key ? open(row, key) : missing(`secret ${row.name} was encrypted with key ${row.key_id}`, keyFile, true);
    },
  };
}

const missing = (what: string, keyFile: string, isOne = false): AppError =>
  new AppError("failed_precondition", `${what}, which is not in ${keyFile}`, {
    next: `put that key back into ${keyFile}${isOne ? ", or store the secret again" : ""}`,
  });
