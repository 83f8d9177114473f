import type { MaasMachine } from "../../../../capabilities/fleet/maas-machine.ts";
import type { JsonObject } from "../../../../kernel/lifecycle.ts";
import { hours, minutes } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { type ActingContext, defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { isWrongStatus, patiently, shownAs } from "../onboarding/on-onboarding.ts";
import {
  findMachineOf,
  goneFromMaas,
  type LeavingPayload,
  type OnLeaving,
  parseLeaving,
  removalBegun,
} from "./on-leaving.ts";

/** Numbers, since names differ between versions of MAAS. */
const STATUS = { new: 0, ready: 4, releasing: 12, failedReleasing: 13, erasing: 14, failedErasing: 15 } as const;
/** What MAAS releases; all else it refuses. */
const RELEASABLE: readonly number[] = [5, 6, 8, 9, 10, 11];

/** After its removal has begun, and failed further on, the node is retired again: the next attempt goes on removing it. */
const goesOn = ({ payload, target }: Pick<Acting, "payload" | "target">) =>
  payload.mode === "full_decommission" ? [removalBegun(target)] : [];

type Receipt = { readonly erase: boolean };
type Acting = ActingContext<LeavingPayload, JsonObject, never, never, JsonObject, OnLeaving>;

/**
 * Gives the machine back to MAAS, which ends its system and erases its disks. Where erasing fails and the profile says so, it is released without.
 * Asked twice, MAAS does it once.
 */
export const releaseMaasNode = defineStepOn<OnLeaving>()({
  kind: "release_maas_node",
  needs: [],
  defaults: { timeout: hours(6), maxRetries: 2 },
  parse: parseLeaving,
  before: async () => ({}),
  announces: async (context) => goesOn(context as Acting),
  async act(context): Promise<{ receipt: Receipt } | undefined> {
    await release(context as Acting, true);
    return { receipt: { erase: true } };
  },
  async carryOn(context): Promise<{ receipt: Receipt }> {
    await release(context as Acting, false);
    return { receipt: { erase: false } };
  },
  probe: (context) => patiently(async () => releasedBy(context as Acting, (await findMachineOf(context)).machine)),
});

async function release(context: Acting, erase: boolean): Promise<void> {
  const { site, machine } = await findMachineOf(context);
  if (machine === undefined) return;
  const comment = `decommissioned (${context.payload.mode})`;
  try {
    await site.maas.release(site.target, machine.systemId, { erase, comment }, context.call);
  } catch (error) {
    // Somebody was faster, or MAAS cannot: what it shows now decides.
    if (!isWrongStatus(error)) throw error;
  }
}

function releasedBy({ payload, target, receipt }: Acting, machine: MaasMachine | undefined): ProbeReport {
  if (machine === undefined) {
    if (payload.mode === "reimage") throw goneFromMaas(target);
    return { state: "done", message: "MAAS has no machine of the node" };
  }
  const message = `MAAS shows ${shownAs(machine)}`;
  const facts = { shown: machine.statusName };
  switch (machine.status) {
    case STATUS.new:
    case STATUS.ready:
      // Somebody else has released it, or the answer to our own order was lost.
      if (receipt === null) return { state: "done", message: `${message}; nobody knows whether its disks were erased` };
      return { state: "done", message };
    case STATUS.releasing:
    case STATUS.erasing:
      return { state: "in_progress", message, cause: { code: "release_failed", facts } };
    case STATUS.failedErasing:
      if (receipt?.erase === false) return { state: "in_progress", message, cause: { code: "release_failed", facts } };
      if (payload.fallsBackToNoErase) return { state: "halfway", message };
      // Before this attempt has tried, a failure is that of another one.
      if (receipt === null) return { state: "not_done", message };
      throw failedAs(
        "erase_failed",
        `MAAS could not erase the disks of node ${target.hostname}: ${shownAs(machine)}`,
        facts,
      );
    case STATUS.failedReleasing:
      if (receipt === null) return { state: "not_done", message };
      throw failedAs("release_failed", `MAAS could not release node ${target.hostname}: ${shownAs(machine)}`, facts);
    default:
      if (RELEASABLE.includes(machine.status)) return { state: "not_done", message };
      throw failedAs(
        "machine_not_usable",
        `MAAS shows node ${target.hostname} as ${shownAs(machine)}: it cannot be released`,
        facts,
      );
  }
}

export const powerOffMaasNode = defineStepOn<OnLeaving>()({
  kind: "power_off_maas_node",
  needs: [],
  defaults: { timeout: minutes(15), maxRetries: 2 },
  parse: parseLeaving,
  before: async () => ({}),
  announces: async (context) => goesOn(context as Acting),
  async act(context) {
    const { site, machine } = await findMachineOf(context);
    if (machine !== undefined) await site.maas.powerOff(site.target, machine.systemId, context.call);
    return { receipt: { ordered: true } };
  },
  probe: (context) =>
    patiently(async (): Promise<ProbeReport> => {
      const { machine } = await findMachineOf(context);
      if (machine === undefined) return { state: "done", message: "MAAS has no machine of the node" };
      const message = `MAAS shows power ${machine.power}`;
      if (machine.power === "off") return { state: "done", message };
      // Announced is not ordered: only the receipt says that MAAS was commanded. Commanding it twice is harmless.
      if (context.receipt === null) return { state: "not_done", message };
      return { state: "in_progress", message, cause: { code: "power_off_failed", facts: { shown: machine.power } } };
    }),
});

/** Nothing is left of the node in MAAS, unless its site keeps machines. */
export const removeMaasRecord = defineStepOn<OnLeaving>()({
  kind: "remove_maas_record",
  needs: [],
  defaults: { timeout: minutes(15), maxRetries: 2 },
  parse: parseLeaving,
  before: async () => ({}),
  announces: async (context) => goesOn(context as Acting),
  async act(context) {
    const { site, machine } = await findMachineOf(context);
    if (machine !== undefined && !site.retainsMachines)
      await site.maas.deleteMachine(site.target, machine.systemId, context.call);
    return undefined;
  },
  probe: (context) =>
    patiently(async (): Promise<ProbeReport> => {
      const { site, machine } = await findMachineOf(context);
      if (machine === undefined) return { state: "done", message: "MAAS has no machine of the node" };
      if (site.retainsMachines) return { state: "done", message: "the site keeps its machines in MAAS" };
      return { state: "not_done", message: `MAAS shows ${shownAs(machine)}` };
    }),
});
