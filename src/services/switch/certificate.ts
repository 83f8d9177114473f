import { parseSwitchId } from "../../kernel/ids.ts";
import { switchLifecycle } from "../../lifecycles/switch/lifecycle.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import * as work from "../../store/lifecycle/work.ts";
import { listSwitches, switchTraits } from "../../store/switch/switches.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { checkPins, checkShown, parseFingerprint } from "../device/certificate.ts";
import { unknownDevice } from "../device/device.ts";

const { kind } = switchLifecycle;

export interface AcceptSwitchCertificate {
  readonly id: string;
  readonly fingerprint: string;
  /** Of its operating system; otherwise of its BMC. */
  readonly os: boolean;
}

/**
 * From now on the switch must show this certificate, and no other. What its BMC shows is compared first. What its operating system shows
 * is known only to the run that failed by it, and is compared with nothing here: the table of roles keeps that to administrators.
 */
export async function acceptSwitchCertificate(
  deps: ServiceDeps,
  caller: Caller,
  input: AcceptSwitchCertificate,
): Promise<void> {
  const id = parseSwitchId(input.id, "id");
  const fingerprint = parseFingerprint(input.fingerprint);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind, id }]);
    const [thing] = await listSwitches(tx, { ids: [id] });
    if (!thing) throw unknownDevice(switchTraits, id);
    checkPins(thing.bmc.trust, `switch ${id}`);
    const pinned = input.os ? thing.facts.nvosCertificateFingerprint : thing.facts.certificateFingerprint;
    if (!input.os) checkShown(fingerprint, { cause: thing.outcome?.cause, pinned });
    if (pinned === fingerprint) return;
    const facts = input.os ? { nvosCertificateFingerprint: fingerprint } : { certificateFingerprint: fingerprint };
    await commitOrRefuse(tx, deps.stores, [{ kind, thing, facts, ...doneBy(caller) }]);
    await work.wake(tx, [{ kind, id }]);
    announce(tx);
  });
}
