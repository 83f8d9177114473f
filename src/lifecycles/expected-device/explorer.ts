import { createHash } from "node:crypto";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { DeviceIdentity } from "../../capabilities/inventory.ts";
import { need, type Provider } from "../../capabilities/provider.ts";
import type { Cause, DeviceFamily } from "../../kernel/causes.ts";
import { create, type Effect, require, wake } from "../../kernel/effects.ts";
import { causeOf } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { happened, waitFor } from "../../kernel/outcome.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { rackLifecycle } from "../rack/lifecycle.ts";
import type { ExpectedDevice, ExploreResult } from "./expected-device.ts";

export interface ExplorerContext {
  readonly provider: Provider;
  readonly call: CallContext;
  readonly clock: Clock;
  readonly target: () => Promise<BmcTarget>;
  readonly exploreEvery: Duration;
}

/** What the explorer makes of an expected row. */
export interface ExploredKind<E extends ExpectedDevice> {
  /** Of the device that is made. */
  readonly lifecycle: { readonly kind: string; readonly transitions: readonly unknown[] };
  readonly noun: string;
  /** The fact of the row that names the device. */
  readonly link: string;
  /** How its ids begin: kind, type and source of the digest. */
  readonly idPrefix: string;
  /** What a device of the kind does not say of itself. */
  readonly model: string;
  /** Columns that the device takes from its row besides those that all devices have. */
  readonly columns?: (expected: E) => JsonObject;
}

const SHOWN_AS: Readonly<Record<DeviceFamily, ExploreResult>> = {
  silent: "unreachable",
  busy: "unreachable",
  keeps_out: "wrong_credentials",
  forbids: "wrong_credentials",
  unproven: "failed",
  odd: "failed",
  declines: "failed",
};

interface NotYet {
  /** Facts that were read all the same. */
  readonly seen?: JsonObject;
  readonly cause?: Cause;
}

const NO_ADDRESS: Cause = { code: "endpoint_missing", facts: { at: "bmc" } };

/** Contacts the BMC, compares who answers with who is expected, and only then makes the device. */
export const createExplorer =
  <E extends ExpectedDevice>(kind: ExploredKind<E>) =>
  async (expected: E, { provider, call, clock, target, exploreEvery }: ExplorerContext) => {
    const { inventory } = need(provider, ["inventory"]);
    const notYet = (explored: ExploreResult, reason: string, { seen, cause }: NotYet = {}) =>
      waitFor(reason, exploreEvery, {
        facts: { explored, exploredAt: clock.now().toISOString(), ...seen },
        ...(cause && { cause }),
      });
    if (expected.bmc.address === null)
      return notYet("pending", "no bmc_ip_address is given: update the row with one", { cause: NO_ADDRESS });

    const { existing } = expected;
    if (existing?.markedForDeletion) {
      const reason = `${kind.noun} ${existing.id}, which has this BMC, is marked for deletion: waiting until it is gone`;
      return notYet("pending", reason);
    }

    let identity: DeviceIdentity;
    try {
      identity = await inventory.identify(await target(), call);
    } catch (error) {
      if (error instanceof DeviceFailure)
        return notYet(SHOWN_AS[error.family], explain(error), { cause: causeOf(error) });
      throw error;
    }
    // Whoever answered: the password went to this one, and goes to no other from now on.
    const certificateFingerprint = expected.facts.certificateFingerprint ?? identity.certificateFingerprint ?? null;
    const seen = { certificateFingerprint };
    const wrong = findWrong(kind, expected, identity);
    if (wrong) return notYet(wrong.explored, wrong.reason, { ...wrong, seen });
    const id = existing?.id ?? deviceIdOf(kind, filledIn(kind, identity, expected.name));
    return happened("identified", {
      facts: { explored: "linked", exploredAt: clock.now().toISOString(), [kind.link]: id, ...seen },
      effects: [
        existing
          ? require(kind.lifecycle, id, { notDeleted: true })
          : // Under this BMC there is no device; one with this id was made from another row, which must not be linked twice.
            create(kind.lifecycle, id, rowOf(kind, expected, id, identity), { mustBeNew: true }),
        ...rackEffects(expected.rackId),
      ],
    });
  };

/** A rack is on record from its first device on, and gets a pass, since what it consists of has changed. */
const rackEffects = (rackId: string | null): Effect[] =>
  rackId === null ? [] : [create(rackLifecycle, rackId, { name: rackId }), wake(rackLifecycle, rackId)];

const explain = ({ family, message }: DeviceFailure): string =>
  family === "unproven"
    ? `${message}. Update the row with its address and password to accept the certificate that the BMC shows next`
    : message;

/** Why it is not the device that is expected, if it is not. */
function findWrong(
  { noun }: Pick<ExploredKind<never>, "noun">,
  { serial, name, bmc, existing }: ExpectedDevice,
  identity: DeviceIdentity,
): { readonly explored: ExploreResult; readonly reason: string; readonly cause?: Cause } | undefined {
  if (identity.serial !== null && identity.serial !== serial) {
    const expected = serial === "" ? "but the row states none" : `expected ${serial}`;
    return {
      explored: "wrong_serial",
      reason: `the BMC at ${bmc.address} reports serial ${identity.serial}, ${expected}`,
      cause: {
        code: "wrong_identity",
        facts: { at: "bmc", address: bmc.address ?? "", expected: serial, shown: identity.serial },
      },
    };
  }
  if (existing && existing.serial !== null && existing.serial !== identity.serial) {
    const reason = `${noun} ${existing.id} is on record with this BMC, but with serial ${existing.serial} instead of ${identity.serial ?? "none"}; delete that ${noun} first`;
    return { explored: "duplicate", reason };
  }
  if (identity.serial === null && name === "" && !existing) {
    const reason = `the BMC at ${bmc.address} reports no serial, and the row has no name to use instead; give the row a name`;
    return { explored: "failed", reason };
  }
  return undefined;
}

function rowOf<E extends ExpectedDevice>(
  { columns }: ExploredKind<E>,
  expected: E,
  id: string,
  identity: DeviceIdentity,
): JsonObject {
  const { bmc, name, description, labels, rackId } = expected;
  return {
    name: name === "" ? id : name,
    description,
    labels,
    rack_id: rackId,
    bmc_mac: bmc.mac,
    bmc_address: bmc.address,
    bmc_port: bmc.port,
    ...columns?.(expected),
    facts: {
      serial: identity.serial,
      vendor: identity.vendor,
      model: identity.model,
      certificateFingerprint: identity.certificateFingerprint ?? null,
    },
  };
}

const BASE32_EXTENDED_HEX = "0123456789abcdefghijklmnopqrstuv";

/** What a device does not say of itself, as other clients of this contract fill it in: so they arrive at the same id. */
export const filledIn = (
  { model: itsModel }: Pick<ExploredKind<never>, "model">,
  { serial, vendor, model }: DeviceIdentity,
  expectedName: string,
): NamedDevice => ({ serial: serial ?? expectedName, vendor: vendor ?? "NVIDIA", model: model ?? itsModel });

interface NamedDevice {
  readonly serial: string;
  readonly vendor: string;
  readonly model: string;
}

/** The same device always gets the same id: its kind, its type, chassis serial as the source, and a digest of who it is. */
export function deviceIdOf(
  { idPrefix }: Pick<ExploredKind<never>, "idPrefix">,
  { serial, vendor, model }: NamedDevice,
): string {
  const digest = createHash("sha256").update(`s${serial}-b${vendor}-c${model}`).digest();
  let bits = "";
  for (const byte of digest) bits += byte.toString(2).padStart(8, "0");
  const words = bits.match(/.{1,5}/g) ?? [];
  return `${idPrefix}${words.map((word) => BASE32_EXTENDED_HEX[Number.parseInt(word.padEnd(5, "0"), 2)]).join("")}`;
}
