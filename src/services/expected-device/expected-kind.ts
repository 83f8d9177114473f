import type { MoveEffect } from "../../kernel/effects.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { BmcDeviceRecord } from "../../store/device/bmc-devices.ts";
import type { ExpectedDeviceRecord, ExpectedDevices } from "../../store/expected-device/expected-devices.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import type { Listing } from "../../store/postgres/listing.ts";
import type { ServiceDeps } from "../call/deps.ts";
import type { Checked, ExpectedColumns, ExpectedInput, ExpectedWords, OwnColumns } from "./input.ts";

/** What the services of expected devices need to know of a kind; everything else they do for all kinds alike. */
export interface ExpectedKind<R extends ExpectedDeviceRecord, I extends ExpectedInput>
  extends ExpectedWords,
    OwnColumns<I> {
  /** Such as expected_power_shelf. */
  readonly kind: string;
  /** The kind of the devices that are made from the rows. */
  readonly device: string;
  /** What people call a row, a device and devices. */
  readonly nouns: { readonly row: string; readonly device: string; readonly devices: string };
  /** The word of the command line. */
  readonly command: string;
  readonly list: ExpectedDevices<R>["list"];
  readonly listing: Listing<string, R>;
  /** The field of lists with the device that was made from a row. */
  readonly linkField: string;
  readonly parseDeviceId: (text: string, field: string) => string;
  readonly findDevicesOfBmcs: (db: Queryable, macs: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  readonly listDevices: (
    db: Queryable,
    ids: readonly string[],
  ) => Promise<readonly Pick<BmcDeviceRecord, "id" | "rackId" | "bmc">[]>;
  /** The columns that only this kind has, as they are on record. */
  readonly ownOf?: (row: R) => JsonObject;
  /** The input with the secrets that only this kind has as they are put on record. */
  readonly withOwnSecrets?: (
    input: I,
    store: <T extends string | undefined>(text: T, field: string) => Promise<T | string>,
  ) => Promise<I>;
  /** Checks and keeps secrets that only this kind has; `row` is what is on record. */
  readonly putOwnSecrets?: (
    tx: Transaction,
    deps: ServiceDeps,
    checked: Checked<I>,
    row: R | undefined,
  ) => Promise<void>;
  /** Columns of the device that follow those of its row, as its place does. */
  readonly ownPlace?: (row: ExpectedColumns) => JsonObject;
  /** Moves of the row's device that an update makes. */
  readonly whenUpdated?: (row: R) => readonly MoveEffect[];
}
