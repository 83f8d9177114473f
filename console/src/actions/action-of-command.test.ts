import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { NextCommandSchema } from "../../../contract/millwright/v1/explain_pb.js";
import { fieldsToAsk } from "./action-fields.ts";
import { actionOf } from "./action-of-command.ts";

const next = (method: string, request: Record<string, string>) =>
  create(NextCommandSchema, { command: "millwright x", why: "helps", call: { method, request } });

test("what helps becomes an action with what is given, which asks for the rest", () => {
  const action = actionOf(next("millwright.v1.MachineLifecycleService/ExitMaintenance", { machine_id: "m-1" }));
  expect(action).toMatchObject({ label: "Exit maintenance", cli: "millwright x", request: { machineId: "m-1" } });
  expect(action && fieldsToAsk(action.method, action.request).map(({ name }) => name)).toEqual([
    "comment",
    "acknowledge",
  ]);
});

test("what only reads, or is of another service, is none", () => {
  expect(actionOf(create(NextCommandSchema, { command: "millwright x" }))).toBeUndefined();
  expect(actionOf(next("some.Other/Method", {}))).toBeUndefined();
});
