import { type DescService, fromJson, type JsonObject } from "@bufbuild/protobuf";
import type { ActionCall } from "../../../contract/millwright/v1/explain_pb.js";
import { type Action, defineAction } from "./action.ts";

interface Recommended {
  readonly command: string;
  readonly why: string;
  readonly call?: ActionCall | undefined;
}

/** The action behind what the server recommends; undefined where no call does it, or one of another service. */
export function actionOf(service: DescService, { command, why, call }: Recommended): Action | undefined {
  const [typeName, name] = call?.method.split("/") ?? [];
  const method = service.typeName === typeName ? service.methods.find((each) => each.name === name) : undefined;
  if (call === undefined || method === undefined || method.methodKind !== "unary") return undefined;
  const given: JsonObject = call.request ?? {};
  const message = fromJson(method.input, given) as unknown as Readonly<Record<string, unknown>>;
  // What the server has not said is asked for, and so must not be there, not even empty.
  const request = Object.fromEntries(
    method.input.fields.flatMap((field) => (field.name in given ? [[field.localName, message[field.localName]]] : [])),
  );
  const said = typeof given.action === "string" ? given.action : wordsOf(method.name);
  return defineAction({
    label: said.charAt(0).toUpperCase() + said.slice(1).replaceAll("-", " "),
    says: why.charAt(0).toUpperCase() + why.slice(1),
    method: { ...method, methodKind: "unary" },
    request,
    cli: command,
    isDangerous: ENDS_WORK.test(method.name),
  });
}

/** What ends work that goes on is no button that is pressed by habit. */
const ENDS_WORK = /^(Terminate|Cancel|Abort|Rollback)/;

/** `ClearRackError` as people say it. */
const wordsOf = (name: string): string => name.replace(/(?!^)[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
