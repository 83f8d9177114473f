import { expect, test } from "vitest";
import type { ActionCall } from "../../../contract/millwright/v1/explain_pb.js";
import { FleetNodeService } from "../../../contract/millwright/v1/fleet_node_pb.js";
import { RackService } from "../../../contract/millwright/v1/rack_pb.js";
import { fieldsToAsk } from "./action-fields.ts";
import { actionOf } from "./called-action.ts";

const call = (method: string, request: object, missing: string[] = []) =>
  ({ method: `millwright.v1.${method}`, request, missing }) as unknown as ActionCall;
const with_ = (what: ActionCall | undefined) => ({ command: "millwright …", why: "helps", call: what });

test("what the server recommends becomes a button, which asks for what the server has not said", () => {
  const retry = actionOf(
    FleetNodeService,
    with_(call("FleetNodeService/ActOnNode", { node: "fn-1", action: "retry-stage" })),
  );
  expect(retry).toMatchObject({
    label: "Retry stage",
    says: "Helps",
    request: { node: "fn-1", action: "retry-stage" },
  });
  expect(retry && fieldsToAsk(retry.method, retry.request).map(({ name }) => name)).toEqual(["comment"]);
  expect(actionOf(RackService, with_(call("RackService/ClearRackError", { rack_id: "r" })))).toMatchObject({
    label: "Clear rack error",
    request: { rackId: "r" },
  });
});

test("what only reads, or is of another service, is no button", () => {
  expect(actionOf(RackService, with_(undefined))).toBeUndefined();
  expect(actionOf(RackService, with_(call("FleetNodeService/ActOnNode", { node: "fn-1" })))).toBeUndefined();
  expect(actionOf(RackService, with_(call("RackService/NoSuchMethod", {})))).toBeUndefined();
});
