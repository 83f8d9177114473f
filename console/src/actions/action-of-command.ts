import {
  type DescMethodUnary,
  type DescService,
  fromJson,
  type JsonObject,
  type MessageShape,
} from "@bufbuild/protobuf";
import {
  MachineService as BareMachineService,
  RunService as BareRunService,
} from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { NextCommand } from "../../../contract/millwright/v1/explain_pb.js";
import { FleetNodeService } from "../../../contract/millwright/v1/fleet_node_pb.js";
import { MachineLifecycleService, MachinePowerService } from "../../../contract/millwright/v1/machine_pb.js";
import { PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { RackService } from "../../../contract/millwright/v1/rack_pb.js";
import { RunActionsService, RunService } from "../../../contract/millwright/v1/run_pb.js";
import { SwitchService } from "../../../contract/millwright/v1/switch_pb.js";
import { nameOfMethod } from "../api/method-name.ts";
import { pathOfThing } from "../pages/thing-path.ts";
import type { Action } from "./action.ts";

/** Services that explanations name. A command of another one is copied, and typed. */
const SERVICES: readonly DescService[] = [
  BareMachineService,
  BareRunService,
  FleetNodeService,
  MachineLifecycleService,
  MachinePowerService,
  PowerShelfService,
  RackService,
  RunActionsService,
  RunService,
  SwitchService,
];

/** What an explanation says that helps, as an action; undefined for what only reads, and for services that are not here. */
export function actionOf({ command, why, call }: NextCommand): Action | undefined {
  const method = SERVICES.flatMap(({ methods }) => methods).find(
    (each): each is DescMethodUnary =>
      each.methodKind === "unary" && nameOfMethod(each as DescMethodUnary) === call?.method,
  );
  if (method === undefined || call === undefined) return undefined;
  return {
    label: sentence(method.name.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase()),
    says: `${sentence(why)}.`,
    method,
    request: givenOf(method, call.request ?? {}),
    cli: command,
    leadsTo: runOfAnswer,
  };
}

/** Only what the explanation gives, so that the dialog knows what is left to ask for. */
function givenOf(method: DescMethodUnary, request: JsonObject): Readonly<Record<string, unknown>> {
  const message = fromJson(method.input, request) as MessageShape<typeof method.input> & Record<string, unknown>;
  const given = method.input.fields.filter(({ name, jsonName }) => name in request || jsonName in request);
  return Object.fromEntries(given.map(({ localName }) => [localName, message[localName]]));
}

const sentence = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

/** To the run that does it, where the answer names one. */
function runOfAnswer(answer: unknown): string | undefined {
  const { run, runId } = answer as { readonly run?: { readonly runId?: unknown }; readonly runId?: unknown };
  const id = run?.runId ?? runId;
  return typeof id === "string" && id !== "" ? pathOfThing("run", id) : undefined;
}
