import { timingSafeEqual } from "node:crypto";
import { type CredentialPlace, describePlace } from "../../capabilities/credential-place.ts";
import type { SecretReferences } from "../../capabilities/secrets/secret-references.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Queryable } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { openKeyRing } from "./key-ring.ts";
import { type SecretRow, SIGNATURE_BYTES, seal, signatureOf } from "./sealing.ts";
import type { SecretKey } from "./secret-key-file.ts";
import { type KeyRotation, keyFor, keyRotation } from "./secret-rotation.ts";
import { followReference } from "./stored-reference.ts";

/** Signs what callers hand back to us, so that nobody else can make it. All replicas of a site have the same keys. */
export interface Signer {
  /** `purpose` keeps what is signed for one use from being taken for another. */
  sign(purpose: string, text: string): string;
  /** Also true of what a key signed that has been rotated out of use, but is still in the file. */
  isSigned(purpose: string, text: string, signature: string): boolean;
}

/** A secret that opens a connection, and where it is to be sent. */
export interface Bound {
  readonly name: string;
  readonly place: CredentialPlace;
}

/** The only place where passwords and keys are kept. No error, log line or event of it carries a value. */
export interface SecretStore extends Signer, KeyRotation {
  put(tx: Queryable, name: string, plaintext: string): Promise<void>;
  /**
   * Keeps one that opens a connection: it is for this place from now on. A pin that was kept along for the same place stays, unless the
   * credential is given together with its address.
   */
  putFor(tx: Queryable, bound: Bound, plaintext: string, options?: { readonly withAddress: boolean }): Promise<void>;
  get(db: Queryable, name: string): Promise<string | undefined>;
  /**
   * One query for all. Names without a secret are not in the answer; one that cannot be read is there as its error, and spoils no other.
   * Not for those that open a connection, which are opened by `openFor` alone.
   */
  getMany(db: Queryable, names: readonly string[]): Promise<ReadonlyMap<string, string | AppError>>;
  /**
   * Opens those that are for their places, in the order of the question; undefined: there is none. One that was given for another place
   * is answered with `NotForThisAddress`, and not decrypted.
   */
  openFor(db: Queryable, wanted: readonly Bound[]): Promise<(OpenedSecret | AppError | undefined)[]>;
  /** The same as `getMany` for those that open a connection, where nothing of them is sent. */
  getManyUnsent(db: Queryable, names: readonly string[]): Promise<ReadonlyMap<string, string | AppError>>;
  /** The same where references are not followed: for the name of an account. */
  getManyAsStored(db: Queryable, names: readonly string[]): Promise<ReadonlyMap<string, string | AppError>>;
  /** Which of these there are, in one query; nothing of them is read, so that one that cannot be opened is there as well. */
  findNames(db: Queryable, names: readonly string[]): Promise<ReadonlySet<string>>;
  remove(tx: Queryable, name: string): Promise<void>;
}

export interface OpenedSecret {
  readonly plaintext: string;
  /** The certificate that was pinned at its place when the record lost its own pin; null: none. */
  readonly pin: string | null;
}

/** It was given for another address, or to be sent under another trust. */
export class NotForThisAddress extends AppError {
  readonly givenFor: CredentialPlace;
  readonly wantedAt: CredentialPlace;

  constructor(what: string, given: CredentialPlace, wanted: CredentialPlace, next?: string) {
    const message = `${what} are not for this address: they were given for ${describePlace(given)}, and not for ${describePlace(wanted)}`;
    super("failed_precondition", message, next === undefined ? {} : { next });
    this.name = "NotForThisAddress";
    this.givenFor = given;
    this.wantedAt = wanted;
  }

  about(what: string, next: string): NotForThisAddress {
    return new NotForThisAddress(what, this.givenFor, this.wantedAt, next);
  }
}

interface BoundRow extends SecretRow {
  /** Null: bound to nothing yet, and for the address that is on record. */
  readonly bound_to: string | null;
  readonly bound_pin: string | null;
}

type ReadRow = Omit<BoundRow, "bound_pin">;

/** A value that a replica of an earlier version wrote is not what was bound. */
const IS_BOUND = "bound_nonce = nonce";

export interface SecretStoreOptions {
  readonly keyFile: string;
  /** Absent: no credential is kept elsewhere. */
  readonly references?: SecretReferences;
}

/** Makes the key file when there is none. */
export function openSecretStore({ keyFile, references }: SecretStoreOptions): SecretStore {
  const ring = openKeyRing(keyFile);
  const { decrypt } = ring;
  /** What is kept elsewhere is read there. */
  const follow = async (row: SecretRow): Promise<string | AppError> => {
    const plaintext = decrypt(row);
    return typeof plaintext === "string" ? followReference(row.name, plaintext, references) : plaintext;
  };

  // Asked once a transaction, however many passwords it writes. If the key changes meanwhile, the background encrypts them again.
  const keys = new WeakMap<Queryable, Promise<SecretKey>>();
  function keyOf(tx: Queryable): Promise<SecretKey> {
    if (!("insideTransaction" in tx)) return keyFor(tx, ring);
    const key = keys.get(tx) ?? keyFor(tx, ring);
    keys.set(tx, key);
    return key;
  }

  async function read(db: Queryable, names: readonly string[]): Promise<readonly ReadRow[]> {
    if (names.length === 0) return [];
    return db.query<ReadRow>({
      name: "secrets-get-many",
      text: "SELECT name, key_id, nonce, ciphertext, bound_to FROM secrets WHERE name = ANY($1::text[])",
      values: [names],
    });
  }

  const getMany: SecretStore["getMany"] = async (db, names) =>
    mapOf(await read(db, names), (row) => (row.bound_to === null ? follow(row) : opensConnection(row)));
  const getManyUnsent: SecretStore["getManyUnsent"] = async (db, names) => mapOf(await read(db, names), follow);
  const getManyAsStored: SecretStore["getManyAsStored"] = async (db, names) => mapOf(await read(db, names), decrypt);

  async function openFor(db: Queryable, wanted: readonly Bound[]): Promise<(OpenedSecret | AppError | undefined)[]> {
    if (wanted.length === 0) return [];
    const rows = await db.query<BoundRow>({
      name: "secrets-open-for",
      text: `SELECT name, key_id, nonce, ciphertext,
                    CASE WHEN ${IS_BOUND} THEN bound_to END AS bound_to, CASE WHEN ${IS_BOUND} THEN bound_pin END AS bound_pin
               FROM secrets WHERE name = ANY($1::text[])`,
      values: [wanted.map(({ name }) => name)],
    });
    const found = new Map(rows.map((row) => [row.name, row]));
    const opened = wanted.map(async ({ name, place }) => {
      const row = found.get(name);
      if (row === undefined) return undefined;
      // Compared before it is opened, with what stands in the same row: whoever moves the address meanwhile changes nothing of that.
      if (row.bound_to !== null && row.bound_to !== place)
        return new NotForThisAddress(`the credentials ${name}`, row.bound_to, place);
      const plaintext = await follow(row);
      return typeof plaintext === "string" ? { plaintext, pin: row.bound_pin } : plaintext;
    });
    return Promise.all(opened);
  }

  return {
    sign: (purpose, text) => signatureOf(ring.current(), purpose, text).toString("base64url"),
    isSigned(purpose, text, signature) {
      const given = Buffer.from(signature, "base64url");
      if (given.length !== SIGNATURE_BYTES) return false;
      return ring.all().some((key) => timingSafeEqual(given, signatureOf(key, purpose, text)));
    },
    ...keyRotation(ring),
    async put(tx, name, plaintext) {
      const key = await keyOf(tx);
      const { nonce, ciphertext } = seal(name, plaintext, key);
      await tx.execute(
        `INSERT INTO secrets (name, key_id, nonce, ciphertext) VALUES ($1, $2, $3, $4)
         ON CONFLICT (name) DO UPDATE
           SET key_id = excluded.key_id, nonce = excluded.nonce, ciphertext = excluded.ciphertext, updated_at = now()`,
        [name, key.id, nonce, ciphertext],
      );
      failPoint("secrets:put");
    },
    async get(db, name) {
      const value = (await getMany(db, [name])).get(name);
      if (value instanceof AppError) throw value;
      return value;
    },
    getMany,
    getManyUnsent,
    getManyAsStored,
    openFor,
    async putFor(tx, { name, place }, plaintext, { withAddress } = { withAddress: false }) {
      const key = await keyOf(tx);
      const { nonce, ciphertext } = seal(name, plaintext, key);
      await tx.execute(
        `INSERT INTO secrets AS s (name, key_id, nonce, ciphertext, bound_to, bound_nonce) VALUES ($1, $2, $3, $4, $5, $3)
         ON CONFLICT (name) DO UPDATE
           SET key_id = excluded.key_id, nonce = excluded.nonce, ciphertext = excluded.ciphertext, updated_at = now(),
               bound_to = excluded.bound_to, bound_nonce = excluded.nonce,
               bound_pin = CASE WHEN s.bound_nonce = s.nonce AND s.bound_to = excluded.bound_to AND NOT $6 THEN s.bound_pin END`,
        [name, key.id, nonce, ciphertext, place, withAddress],
      );
      failPoint("secrets:put");
    },
    async findNames(db, names) {
      if (names.length === 0) return new Set();
      const rows = await db.query<{ name: string }>({
        name: "secrets-find-names",
        text: "SELECT name FROM secrets WHERE name = ANY($1::text[])",
        values: [names],
      });
      return new Set(rows.map(({ name }) => name));
    },
    async remove(tx, name) {
      await tx.execute("DELETE FROM secrets WHERE name = $1", [name]);
      failPoint("secrets:removed");
    },
  };
}

async function mapOf<R extends SecretRow>(
  rows: readonly R[],
  open: (row: R) => string | AppError | Promise<string | AppError>,
): Promise<ReadonlyMap<string, string | AppError>> {
  return new Map(await Promise.all(rows.map(async (row) => [row.name, await open(row)] as const)));
}

/** Who asks for it without saying where it is sent has no use for it that is allowed. */
const opensConnection = ({ name }: SecretRow): AppError =>
  new AppError("internal", `secret ${name} opens a connection, and is opened for its place alone`);
