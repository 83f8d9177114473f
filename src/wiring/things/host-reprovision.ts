import { MachineLifecycleService } from "../../../contract/millwright/v1/machine_pb.js";
import { hostReprovisions } from "../../api/millwright/host-reprovision/host-reprovisions.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import type { CreateEffect } from "../../kernel/effects.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { type Duration, hours } from "../../kernel/time/duration.ts";
import {
  type HostReprovisionContext,
  hostReprovisionHandlers,
  type OwnUpgrade,
} from "../../lifecycles/host-reprovision/handlers.ts";
import type { HostReprovision } from "../../lifecycles/host-reprovision/host-reprovision.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { deviceFirmwareSteps } from "../../runs/steps/rack/device-steps.ts";
import { hostReprovisionTarget } from "../../runs/targets/host-reprovision.ts";
import { startsRun } from "../../runs/targets/new-run.ts";
import { explainHostReprovision } from "../../services/explain/rack/host-reprovision.ts";
import { hostReprovisionStore } from "../../store/host-reprovision/host-reprovisions.ts";
import { withFakeEndpoints } from "../fake-machines.ts";
import { devicePartsOf } from "../rack/device-parts.ts";
import type { WiredTarget } from "../run-targets.ts";
import { wireStepTargets } from "../step-targets.ts";
import { defineThing, type HandlerTools, type TargetTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

const { kind } = hostReprovisionStore.lifecycle;
/** As the settings have them. */
const DEFAULTS = { retryInterval: hours(1), maxRetries: 5, flashDeadline: hours(1) } as const;

function handlers({ clock, hostFirmware = DEFAULTS }: HandlerTools) {
  const { retryInterval, maxRetries, flashDeadline } = hostFirmware;
  return withContext(
    hostReprovisionHandlers,
    (): Omit<HostReprovisionContext, "call"> => ({
      clock,
      retryInterval,
      maxRetries,
      startUpgrade: (upgrade) => startsUpgrade(upgrade, flashDeadline),
    }),
  );
}

/** On the tray's own behalf: a run on the machine itself would take the place of one that somebody has started. */
const startsUpgrade = (
  { host: { id }, firmwareId, components, initiator, unique }: OwnUpgrade,
  flashDeadline: Duration,
): CreateEffect =>
  startsRun(
    {
      target: { kind, id },
      holder: { kind, id },
      plan: {
        planId: "host-firmware",
        displayName: "Firmware of a compute tray",
        steps: deviceFirmwareSteps(firmwareId, components, flashDeadline),
      },
      initiator,
    },
    [kind, id, unique],
  );

function runTarget(tools: TargetTools): WiredTarget<HostReprovision> {
  const { db, secrets, runs } = tools;
  const targetsOf = wireStepTargets({ db, secrets, runbooks: runs.runbooks });
  const machineOf = ({ id, machine }: HostReprovision): Machine => {
    if (machine) return withFakeEndpoints(machine);
    throw new StepFailure("target_gone", `machine ${id} does not exist any more`, {
      facts: { what: "machine", name: id },
    });
  };
  return {
    kind: hostReprovisionTarget,
    providerOf: ({ machine }) => (machine && runs.hardware.providerOf(machine.spec)) ?? { name: kind, can: {} },
    // What is written to is the machine, whoever wants it.
    partsOf: ({ target: { thing } }) => ({
      // What is written to is the machine, whoever wants it: steps ask who answers by its serial number.
      target: thing.machine ?? thing,
      ...devicePartsOf({ kind: "machine", id: thing.id }, async () => targetsOf(machineOf(thing)).bmc(), tools),
    }),
  };
}

export const hostReprovision = defineThing({
  store: hostReprovisionStore,
  handlers,
  runTarget,
  explain: explainHostReprovision,
  methods: ({ services }) => [partOf(MachineLifecycleService, hostReprovisions(services))],
  methodGroup: "machines",
  // biome-ignore format: a table is read by its columns
  things: {
    "millwright.v1.MachineLifecycleService/ReprovisionMachine":          "machine machine_id",
  },
  // biome-ignore format: a table is read by its columns
  roles: {
    "millwright.v1.MachineLifecycleService/ReprovisionMachine": ["operator"],
  },
});
