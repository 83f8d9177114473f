import { AppError } from "../../kernel/errors.ts";
import { type MachineId, parseMachineId } from "../../kernel/ids.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { listMachines } from "../../store/machine/machines.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { checkPins, checkShown, parseFingerprint } from "../device/certificate.ts";
import { MACHINE_KIND, machineKey, refuseRetired, unknownMachine } from "./machines.ts";
import { wakeWithRuns } from "./wake.ts";

export interface AcceptCertificate {
  readonly machineId: string;
  readonly fingerprint: string;
}

/** From now on the machine's BMC must show this certificate, and no other. Nothing is sent to it before it does. */
export async function acceptMachineCertificate(
  deps: ServiceDeps,
  caller: Caller,
  input: AcceptCertificate,
): Promise<MachineId> {
  const id = parseMachineId(input.machineId, "machine_id");
  const fingerprint = parseFingerprint(input.fingerprint);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [machineKey(id)]);
    const [machine] = await listMachines(tx, { ids: [id] });
    if (!machine) throw unknownMachine(id);
    refuseRetired(machine);
    const { bmc } = machine.spec;
    if (bmc === null)
      throw new AppError("failed_precondition", `machine ${id} has no BMC endpoint`, { field: "machine_id" });
    checkPins(bmc.trust, `machine ${id}`);
    const { cause } = machine.conditions.find(({ type }) => type === "BMCReachable") ?? {};
    const pinned = machine.facts.certificateFingerprint;
    checkShown(fingerprint, { cause, pinned });
    if (pinned === fingerprint) return;
    const facts = { certificateFingerprint: fingerprint };
    await commitOrRefuse(tx, deps.stores, [{ kind: MACHINE_KIND, thing: machine, facts, ...doneBy(caller) }]);
    await wakeWithRuns(tx, id);
  });
  return id;
}
