import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { Provider } from "../../capabilities/provider.ts";
import type { ManagedNode } from "../../capabilities/rack/rack-manager.ts";
import { createBatcher } from "../../kernel/batcher.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Thing } from "../../kernel/lifecycle.ts";
import type { ManagedDevices } from "../../runs/steps/rack/managed/managed-rack.ts";
import { confirmDevice } from "../../runs/steps/rack/reach-bmc.ts";
import type { RunTarget } from "../../runs/targets/run-target.ts";
import { listMachines } from "../../store/machine/machines.ts";
import { listPowerShelves } from "../../store/power-shelf/power-shelves.ts";
import { findArtifactName } from "../../store/rack-firmware/rack-firmware.ts";
import { findSwitches } from "../../store/switch/switches.ts";
import { withFakeEndpoints } from "../fake-machines.ts";
import { wireStepTargets } from "../step-targets.ts";
import { deviceTarget } from "../things/device-target.ts";
import type { TargetTools } from "../things/thing.ts";

/** A device with the way to it. */
interface Reached {
  readonly thing: Thing;
  readonly kind: ManagedNode["kind"];
  /** Null: it is not on record. */
  readonly mac: string | null;
  readonly provider: Provider;
  bmc(): Promise<BmcTarget>;
}

/** Where the devices of racks are, and what they show: with one query a kind for all that are asked for at the same time. */
export function wireManagedDevices(tools: TargetTools): ManagedDevices {
  const { db } = tools;
  const find = wireFinding(tools);
  const reach = async ({ kind, id }: RunTarget): Promise<Reached> => {
    const found = await find[kind]?.(id);
    if (found) return found;
    throw new StepFailure("target_gone", `${kind} ${id} does not exist any more`, { facts: { what: kind, name: id } });
  };
  return {
    async nodeOf(rackId, device) {
      const { kind, mac, bmc } = await reach(device);
      const { address, port, username, password } = await bmc();
      return { id: device.id, rackId, kind, bmc: { address, port, mac, username, password } };
    },
    async look(device, call) {
      const { thing, provider, bmc } = await reach(device);
      const target = await bmc();
      const { can } = provider;
      const serial = await confirmDevice({ target: thing, can, call }, target);
      const root = (await can.manager?.readRoot(target, call))?.uuid ?? null;
      const installed = (await can.firmware?.readInstalled(target, call)) ?? null;
      return { installed, known: { root, serial } };
    },
    async fileName(digest) {
      const name = await findArtifactName(db, digest);
      if (name !== undefined) return name;
      throw new StepFailure("artifact_missing", `the catalogue has no file ${digest} any more`, {
        disposition: "fail",
        facts: { name: digest },
      });
    },
  };
}

function wireFinding(tools: TargetTools): Readonly<Record<string, (id: string) => Promise<Reached | undefined>>> {
  const { db, secrets, signIn, provider, switches: switchProvider, runs } = tools;
  const lookUp = <T extends { readonly id: string }>(
    run: (ids: readonly string[]) => Promise<readonly (T | undefined)[]>,
  ) =>
    createBatcher<string, T | undefined>({
      most: 500,
      atOnce: 2,
      run: async (ids) => {
        const found = new Map((await run(ids)).flatMap((one) => (one ? [[one.id, one] as const] : [])));
        return ids.map((id) => found.get(id));
      },
    });
  const machines = lookUp((ids) => listMachines(db, { ids }));
  const switches = lookUp((ids) => findSwitches(db, ids));
  const shelves = lookUp((ids) => listPowerShelves(db, { ids }));
  const targetsOf = wireStepTargets({ db, secrets, runbooks: runs.runbooks });
  return {
    async machine(id) {
      const found = await machines.submit(id);
      if (!found) return undefined;
      const machine = withFakeEndpoints(found);
      const { spec } = machine;
      const ofMachine = runs.hardware.providerOf(spec) ?? { name: spec.provider, can: {} };
      const { bmc } = targetsOf(machine);
      return { thing: machine, kind: "compute", mac: null, provider: ofMachine, bmc };
    },
    async switch(id) {
      const found = await switches.submit(id);
      if (!found) return undefined;
      const bmc = () => signIn(deviceTarget(found), found.bmc.mac);
      const ofSwitch = switchProvider ?? { name: "switch", can: {} };
      return { thing: found, kind: "switch", mac: found.bmc.mac, provider: ofSwitch, bmc };
    },
    async power_shelf(id) {
      const found = await shelves.submit(id);
      if (!found) return undefined;
      const bmc = () => signIn(deviceTarget(found), found.bmc.mac);
      return { thing: found, kind: "power_shelf", mac: found.bmc.mac, provider, bmc };
    },
  };
}
