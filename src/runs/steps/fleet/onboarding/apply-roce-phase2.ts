import type { MaasInterface, MaasMachine } from "../../../../capabilities/fleet/maas-machine.ts";
import { StepFailure } from "../../../../kernel/errors.ts";
import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { type ActingContext, defineStepOn, type ProbeReport } from "../../../model/step.ts";
import {
  findBound,
  isWrongStatus,
  nameOf,
  type Onboarding,
  type OnboardingPayload,
  type OnOnboarding,
  parseOnboarding,
  patiently,
  type RoceLink,
} from "./on-onboarding.ts";

type Acting = ActingContext<OnboardingPayload, Record<never, never>, never, never, { linked: number }, OnOnboarding>;

/** Gives each RoCE port the address that the site assigned to it. A port that has it is left as it is, so that a repeat adds nothing. */
export const applyRocePhase2 = defineStepOn<OnOnboarding>()({
  kind: "apply_roce_phase2",
  needs: [],
  defaults: { timeout: seconds(300), maxRetries: 5 },
  parse: parseOnboarding,
  before: async () => ({}),

  async act(context): Promise<{ receipt: { linked: number } }> {
    const { maas, target, machine } = await findBound(context);
    const missing = await missingLinks(context, machine);
    const subnets = await maas.listSubnets(target, context.call);
    for (const { port, subnet, ipAddress } of missing) {
      const subnetId = subnets.find(({ cidr }) => cidr === subnet)?.id;
      if (subnetId === undefined) throw unassigned(context, `MAAS has no subnet ${subnet}`);
      const order = { systemId: machine.systemId, interfaceId: portOf(context, machine, port).id, subnetId, ipAddress };
      try {
        await maas.linkSubnet(target, order, context.call);
      } catch (error) {
        if (!isWrongStatus(error)) throw error;
        throw new StepFailure(
          "changed_meanwhile",
          `MAAS does not let its ports be changed now: ${(error as Error).message}`,
        );
      }
    }
    return { receipt: { linked: missing.length } };
  },

  probe: (context: Acting) =>
    patiently(async (): Promise<ProbeReport> => {
      const { machine } = await findBound(context);
      const missing = await missingLinks(context, machine);
      const all = (await context.roceLinks()).length;
      if (missing.length === 0) return { state: "done", message: `${all} ports have their addresses` };
      return { state: "not_done", message: `${missing.length} of ${all} ports lack their addresses` };
    }),
});

async function missingLinks(context: Onboarding, machine: MaasMachine): Promise<readonly RoceLink[]> {
  const links = await context.roceLinks();
  if (links.length === 0) throw unassigned(context, "the site has no assignment for it");
  return links.filter(
    ({ port, ipAddress }) => !portOf(context, machine, port).links.some((link) => link.ipAddress === ipAddress),
  );
}

function portOf(context: Onboarding, { interfaces }: MaasMachine, port: string): MaasInterface {
  const found = interfaces.find(({ name, mac }) => name === port || mac === port.toLowerCase());
  if (found === undefined) throw unassigned(context, `the machine has no port ${port}`);
  return found;
}

const unassigned = ({ target: node }: Onboarding, why: string): StepFailure =>
  failedAs("roce_assignment_missing", `RoCE addresses of ${nameOf(node)}: ${why}`, { name: node.hostname, shown: why });
