import { isRefusal } from "../../../../capabilities/device-failure.ts";
import type { MaasInterface, MaasMachine } from "../../../../capabilities/fleet/maas-machine.ts";
import { messageOf, StepFailure } from "../../../../kernel/errors.ts";
import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { type ActingContext, defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { reachedBy } from "./maas-status.ts";
import {
  type Bound,
  findBound,
  isWrongStatus,
  type Onboarding,
  type OnboardingPayload,
  type OnOnboarding,
  parseOnboarding,
  patiently,
} from "./on-onboarding.ts";

type Receipt = { readonly linked: boolean };
type Acting = ActingContext<OnboardingPayload, Record<never, never>, never, never, Receipt, OnOnboarding>;

const AUTO = "auto";
const UP_ONLY = "link_up";

/** Links the boot port to its subnet with an address that MAAS chooses: without one, a deployment ends in the middle of nowhere. */
export const ensurePxeInterfaceAuto = defineStepOn<OnOnboarding>()({
  kind: "ensure_pxe_interface_auto",
  needs: [],
  defaults: { timeout: seconds(180), maxRetries: 5 },
  parse: parseOnboarding,
  before: async () => ({}),

  async act(context): Promise<{ receipt: Receipt }> {
    const bound = await findBound(context);
    const port = bootPortOf(bound.machine);
    if (port === undefined) return { receipt: { linked: false } };
    const subnetId = await subnetFor(context, bound, port);
    if (subnetId === undefined) return { receipt: { linked: false } };
    try {
      await link(context, bound, port, subnetId);
    } catch (error) {
      if (isWrongStatus(error))
        throw new StepFailure("changed_meanwhile", `MAAS does not let its ports be changed now: ${messageOf(error)}`);
      if (isRefusal(error)) throw notFixable(bound.machine, `MAAS refuses the link: ${messageOf(error)}`);
      throw error;
    }
    return { receipt: { linked: true } };
  },

  probe: (context: Acting) =>
    patiently(async (): Promise<ProbeReport> => {
      const { machine } = await findBound(context);
      const port = bootPortOf(machine);
      if (port?.links.some(({ mode }) => mode === AUTO))
        return { state: "done", message: `${port.name} has an automatic link` };
      const isChangeable = reachedBy(machine) === "editable" || reachedBy(machine) === "allocated";
      const why =
        port === undefined ? "MAAS does not know which port it boots from" : `${port.name} has no automatic link`;
      if (isChangeable && context.receipt === null && port !== undefined) return { state: "not_done", message: why };
      if (context.payload.policy.strict_pxe_preflight) throw notFixable(machine, why);
      return { state: "done", message: `${why}; the profile deploys all the same` };
    }),
});

const bootPortOf = ({ interfaces, bootInterfaceId }: MaasMachine): MaasInterface | undefined =>
  interfaces.find(({ id }) => id === bootInterfaceId);

/** The subnet that the port is on already; else the one subnet with DHCP, from which it booted. More than one would be a guess. */
async function subnetFor(
  { call }: Onboarding,
  { maas, target }: Bound,
  port: MaasInterface,
): Promise<number | undefined> {
  const own = port.links.find(({ subnetId }) => subnetId !== null)?.subnetId;
  if (own != null) return own;
  const serving = (await maas.listSubnets(target, call)).filter(({ hasDhcp }) => hasDhcp);
  return serving.length === 1 ? serving[0]?.id : undefined;
}

async function link(
  { call }: Onboarding,
  { maas, target, machine }: Bound,
  port: MaasInterface,
  subnetId: number,
): Promise<void> {
  const place = { systemId: machine.systemId, interfaceId: port.id };
  for (const { id, mode } of port.links)
    if (mode !== UP_ONLY) await maas.unlinkSubnet(target, { ...place, linkId: id }, call);
  await maas.linkSubnet(target, { ...place, subnetId, ipAddress: null }, call);
}

const notFixable = (machine: MaasMachine, why: string): StepFailure =>
  failedAs("pxe_interface_not_fixable", `${machine.hostname}: ${why}`, { shown: why });
