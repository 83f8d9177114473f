import type { MaasDisk, MaasMachine } from "../../../../capabilities/fleet/maas-machine.ts";
import { StepFailure } from "../../../../kernel/errors.ts";
import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { type ActingContext, defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { drifted, notUsable, reachedBy } from "./maas-status.ts";
import {
  findBound,
  isWrongStatus,
  type OnboardingPayload,
  type OnOnboarding,
  parseOnboarding,
  patiently,
  shownAs,
} from "./on-onboarding.ts";

/** Which disk MAAS would have installed onto. */
type Evidence = { readonly bootDisk: number | null };
type Receipt = { readonly disk: number };
type Acting = ActingContext<OnboardingPayload, Evidence, never, never, Receipt, OnOnboarding>;

/** How the model of a BOSS card's boot disk begins: a Dell card shows `DELLBOSS VD`. */
const BOSS = /\bBOSS\b|^DELLBOSS/i;

/** Has the system installed onto the BOSS disk, and never onto a disk of the node's users. Setting the layout again changes nothing. */
export const configureStorage = defineStepOn<OnOnboarding>()({
  kind: "configure_storage",
  needs: [],
  defaults: { timeout: seconds(180), maxRetries: 5 },
  parse: parseOnboarding,

  async before(context): Promise<Evidence> {
    return { bootDisk: (await findBound(context)).machine.bootDiskId };
  },

  async act(context): Promise<{ receipt: Receipt }> {
    const { maas, target, machine } = await findBound(context);
    const { id } = bossDiskOf(machine);
    try {
      await maas.setBootDisk(target, machine.systemId, id, context.call);
      await maas.setFlatLayout(target, machine.systemId, id, context.call);
    } catch (error) {
      if (!isWrongStatus(error)) throw error;
      throw new StepFailure(
        "changed_meanwhile",
        `MAAS does not let its disks be changed now: ${(error as Error).message}`,
      );
    }
    return { receipt: { disk: id } };
  },

  probe: (context: Acting) =>
    patiently(async (): Promise<ProbeReport> => {
      const { evidence, receipt } = context;
      const { machine } = await findBound(context);
      const reached = reachedBy(machine);
      // While it is commissioned once more, after somebody has mended it, MAAS shows the disks of before.
      if (reached === "commissioning" || reached === "moving")
        return { state: "in_progress", message: shownAs(machine) };
      const disk = bossDiskOf(machine);
      // A crash between the two calls leaves a boot disk without its layout.
      const isWhole = machine.bootDiskId === disk.id && (receipt !== null || evidence.bootDisk === disk.id);
      if (isWhole) return { state: "done", message: `boots from ${disk.name} (${disk.model ?? "BOSS"})` };
      checkEditable(machine);
      return { state: "not_done", message: `boots from ${nameOfDisk(machine)}, and not from ${disk.name}` };
    }),
});

function checkEditable(machine: MaasMachine): void {
  if (reachedBy(machine) === "unusable") throw notUsable(machine);
  if (reachedBy(machine) !== "editable") throw drifted(machine, "Ready, in which its boot disk can be changed");
}

const nameOfDisk = ({ disks, bootDiskId }: MaasMachine): string =>
  disks.find(({ id }) => id === bootDiskId)?.name ?? "no disk";

function bossDiskOf({ hostname, disks }: MaasMachine): MaasDisk {
  const boss = disks.find(({ model }) => model !== null && BOSS.test(model));
  if (boss !== undefined) return boss;
  const models = disks.map(({ name, model }) => `${name} (${model ?? "unknown"})`).join(", ");
  throw failedAs("boss_disk_not_found", `${hostname} has no BOSS disk; MAAS found ${models || "no disks"}`);
}
