import { StepFailure } from "../../kernel/errors.ts";
import { failedAs } from "../../lifecycles/fleet-node/failure-classes.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import type { OnFleetNode } from "../../runs/steps/fleet/on-fleet-node.ts";
import type { OnOnboarding } from "../../runs/steps/fleet/onboarding/on-onboarding.ts";
import { NotForThisAddress } from "../../store/access/secrets.ts";
import { cloudInitTable } from "../../store/catalog/cloud-init.ts";
import { findOtherOnSystem } from "../../store/fleet/nodes.ts";
import { listRoceAssignments } from "../../store/fleet/roce.ts";
import { getMachineBmcCredentials } from "../../store/machine/credentials.ts";
import { listMachines } from "../../store/machine/machines.ts";
import type { TargetTools } from "../things/thing.ts";

type OfOnboarding = Omit<OnOnboarding, keyof OnFleetNode>;

/** What the stages of an onboarding are given beside what all steps on fleet nodes are. */
export function onboardingPartsOf({ db, secrets }: TargetTools, node: FleetNode): OfOnboarding {
  return {
    async powerAccount() {
      // MAAS sends it to the address of the node: that is the machine's own, or there is nothing to give.
      const machines = await listMachines(db, { ids: [node.machineId] });
      const [account] = await getMachineBmcCredentials(db, secrets, machines);
      if (account instanceof NotForThisAddress)
        throw failedAs("credentials_missing", account.message, { at: "bmc", name: node.machineId });
      return account instanceof Error ? undefined : account;
    },
    async knownIdentity() {
      const [machine] = await listMachines(db, { ids: [node.machineId] });
      const { serial = null, macs = [], bmc = null } = machine?.spec ?? {};
      return { serial, macs, bmcAddress: bmc?.address ?? null };
    },
    otherNodeOn: (systemId) => findOtherOnSystem(db, { site: node.site, systemId, exceptId: node.id }),
    async roceLinks() {
      const [assignment] = await listRoceAssignments(db, { site: node.site, hostnames: [node.hostname] });
      return assignment?.links ?? [];
    },
    async bundle(name) {
      const [document] = await cloudInitTable.list(db, { names: [name] });
      if (document) return document.content;
      throw new StepFailure(
        "bundle_missing",
        `the site bootstrap bundle ${name} does not exist; millwright cloud-init create ${name} --file FILE creates it`,
        {
          facts: { name },
        },
      );
    },
  };
}
