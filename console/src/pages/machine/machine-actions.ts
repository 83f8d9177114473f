import type { DescMethodUnary } from "@bufbuild/protobuf";
import type { Machine } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { type Lifecycle, TransitionOwner } from "../../../../contract/millwright/v1/lifecycle_pb.js";
import {
  MachineLifecycleService,
  MachinePowerService,
  PowerOperation,
  PowerOperationSchema,
} from "../../../../contract/millwright/v1/machine_pb.js";
import { type Action, defineAction } from "../../actions/action.ts";
import { standingOf } from "../machines/machine-state.ts";

/** What people can do with a machine now: the moves that its lifecycle's table leaves to callers, and its power. */
export function actionsOf(machine: Machine, lifecycle: Lifecycle | undefined): readonly Action[] {
  const all = [...movesOf(machine, lifecycle), ...powerOf(machine)];
  const isHarmless = ({ isDangerous = false }: Action) => !isDangerous;
  return [...all.filter(isHarmless), ...all.filter((action) => !isHarmless(action))];
}

function movesOf({ machineId, ...machine }: Machine, lifecycle: Lifecycle | undefined): readonly Action[] {
  const { state } = standingOf({ machineId, ...machine } as Machine);
  const isEnd = lifecycle?.states.some(({ name, terminal }) => name === state && terminal) ?? true;
  const possible = (lifecycle?.transitions ?? []).filter(
    ({ from, to, owner }) =>
      owner === TransitionOwner.CALLER && (from === state || (from === "*" && to !== state && !isEnd)),
  );
  return possible.flatMap(({ trigger, to, doc }) => {
    const method = methodOfVerb(trigger);
    if (method === undefined) return [];
    const verb = sentence(trigger);
    return defineAction({
      label: `${verb}`,
      says: `${machineId}: ${state} → ${to}. ${doc}`,
      method,
      request: { machineId },
      cli: `millwright machine ${trigger.replaceAll("_", "-")} ${machineId}`,
      isDangerous: lifecycle?.states.some(({ name, terminal }) => name === to && terminal) ?? false,
    });
  });
}

/** The verb of a row of the table is the beginning of the method's name: `retire` is RetireMachine, `enter_maintenance` EnterMaintenance. */
const methodOfVerb = (verb: string): DescMethodUnary | undefined =>
  MachineLifecycleService.methods.find(
    (method): method is DescMethodUnary =>
      method.methodKind === "unary" && [verb, `${verb}_machine`].includes(snake(method.name)),
  );

const snake = (name: string): string => name.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
const sentence = (words: string): string => {
  const text = words.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
};

const powerOf = ({ machineId, status }: Machine): readonly Action[] =>
  PowerOperationSchema.values
    .filter(
      ({ number, localName }) =>
        number !== PowerOperation.UNSPECIFIED && localName.toLowerCase() !== status?.inventory?.powerState,
    )
    .map(({ number, localName }) => {
      const word = localName.toLowerCase();
      const seen = status?.inventory?.powerState ?? "";
      return defineAction({
        label: `Power ${word}`,
        says: `Has the BMC of ${machineId} switch its power: ${word}. Its system is not shut down first.${seen === "" ? "" : ` Its power was last read as ${seen}.`} It is a run, which succeeds once the BMC reads back what was asked for.`,
        method: MachinePowerService.method.setMachinePower,
        request: { machineIds: [machineId], operation: number },
        cli: `millwright machine power ${word} ${machineId}`,
        isDangerous: number !== PowerOperation.ON,
        leadsTo: runOfResult,
      });
    });

function runOfResult(answer: unknown): string | undefined {
  const { results } = answer as { readonly results: readonly { readonly run?: { readonly runId: string } }[] };
  const runId = results[0]?.run?.runId;
  return runId === undefined ? undefined : `/runs/${encodeURIComponent(runId)}`;
}
