import { randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import { parseMac } from "../../kernel/ids.ts";
import type { Json, JsonObject } from "../../kernel/lifecycle.ts";
import { checkRequiredText } from "../call/required-text.ts";
import { parseBmcEndpoint } from "../device/bmc-endpoint.ts";
import { checkMetadata, type Metadata } from "../device/metadata.ts";
import { parseRackId } from "../device/rack-id.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The columns that only one kind has, as a caller wants them. */
export interface OwnColumns<I> {
  readonly ownColumns?: (input: I, at: (field: string) => string) => JsonObject;
}

export interface ExpectedInput {
  readonly id?: string;
  readonly bmcMac: string;
  readonly bmcUsername: string;
  /** Undefined on an update keeps the one on record. */
  readonly bmcPassword: string | undefined;
  readonly serial: string;
  readonly bmcEndpoint: string | undefined;
  readonly rackId: string | undefined;
  readonly metadata: Metadata;
  readonly retainCredentials?: boolean;
}

/** An expected row as a caller wants it, found in order. */
export interface Checked<I extends ExpectedInput = ExpectedInput> {
  readonly input: I;
  /** As given. */
  readonly id: string | undefined;
  /** For a new row without an id of its own. */
  readonly newId: string;
  readonly mac: string;
  readonly username: string;
  readonly password: string | undefined;
  /** Where it stands in the request. */
  readonly prefix: string;
  readonly row: ExpectedColumns;
}

/** What a caller decides of a row, by the names of its columns. */
export interface ExpectedColumns {
  readonly name: string;
  readonly description: string;
  readonly labels: Readonly<Record<string, string | null>>;
  readonly rack_id: string | null;
  readonly bmc_mac: string;
  readonly bmc_username: string;
  readonly bmc_address: string | null;
  readonly bmc_port: number | null;
  readonly bmc_retain_credentials: boolean;
  /** The serial number, and what the kind has of its own. */
  readonly [column: string]: Json;
}

/** What the check needs to know of a kind. */
export interface ExpectedWords {
  /** The fields of a request, which are the columns too. */
  readonly fields: { readonly id: string; readonly serial: string; readonly list: string };
}

export function checkExpected<I extends ExpectedInput>(
  kind: ExpectedWords & OwnColumns<I>,
  input: I,
  prefix = "",
): Checked<I> {
  const at = (field: string) => `${prefix}${field}`;
  const mac = parseMac(input.bmcMac, at("bmc_mac_address"));
  const id = input.id === undefined ? undefined : parseUuid(input.id, at(kind.fields.id));
  checkRequiredText(input.bmcUsername, at("bmc_username"));
  if (input.bmcPassword !== undefined) checkRequiredText(input.bmcPassword, at("bmc_password"));
  // The explorer links no device whose serial it cannot compare.
  checkRequiredText(input.serial, at(kind.fields.serial));
  const endpoint = input.bmcEndpoint ? parseBmcEndpoint(input.bmcEndpoint, at("bmc_ip_address")) : undefined;
  const { name, description, labels } = checkMetadata(input.metadata, { field: at("metadata"), nameMayBeEmpty: true });
  return {
    input,
    id,
    newId: id ?? randomUUID(),
    mac,
    username: input.bmcUsername,
    password: input.bmcPassword,
    prefix,
    row: {
      name,
      description,
      labels,
      rack_id: parseRackId(input.rackId, at("rack_id")),
      bmc_mac: mac,
      bmc_username: input.bmcUsername,
      bmc_address: endpoint?.address ?? null,
      bmc_port: endpoint?.port ?? null,
      [kind.fields.serial]: input.serial,
      bmc_retain_credentials: input.retainCredentials ?? false,
      ...kind.ownColumns?.(input, at),
    },
  };
}

export function parseUuid(text: string, field: string): string {
  const lower = text.toLowerCase();
  if (UUID.test(lower)) return lower;
  throw new AppError("invalid_argument", `${field}: ${JSON.stringify(text.slice(0, 80))} is not a UUID`, { field });
}

export function refuseRepeated({ fields }: ExpectedWords, words: readonly string[]): void {
  const seen = new Set<string>();
  for (const word of words) {
    if (seen.has(word)) {
      const field = fields.list;
      throw new AppError("invalid_argument", `${field}: ${word} is listed twice`, { field });
    }
    seen.add(word);
  }
}

export function passwordRequired({ prefix }: Checked, why: string): AppError {
  const field = `${prefix}bmc_password`;
  return new AppError("invalid_argument", `${field}: is required with ${why}`, { field });
}
