import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { LifecycleSchema, TransitionOwner } from "../../../../contract/millwright/v1/lifecycle_pb.js";
import { NodeSchema, WorkflowSchema } from "../../../../contract/millwright/v1/node_pb.js";
import { actionsOf } from "./install-actions.ts";

const CALLER = TransitionOwner.CALLER;
const lifecycle = create(LifecycleSchema, {
  kind: "install",
  states: [
    { name: "discovered" },
    { name: "pending" },
    { name: "install_failed" },
    { name: "retired", terminal: true },
  ],
  transitions: [
    { from: "discovered", to: "pending", owner: CALLER, trigger: "approve", doc: "Waits for its boot." },
    { from: "discovered", to: "pending", owner: TransitionOwner.CONTROLLER, trigger: "auto" },
    { from: "install_failed", to: "pending", owner: CALLER, trigger: "reset" },
    { from: "*", to: "retired", owner: CALLER, trigger: "retire" },
  ],
});
const workflows = [create(WorkflowSchema, { id: "ubuntu", name: "Ubuntu" })];
const of = (state: string) => actionsOf(create(NodeSchema, { id: "n-1", state }), lifecycle, workflows);

test("what people may do is what the table leaves to callers, what ends the node last", () => {
  expect(of("discovered").map(({ label, isDangerous }) => [label, isDangerous])).toEqual([
    ["Approve", false],
    ["Retire", true],
  ]);
  expect(of("retired")).toEqual([]);
});

test("a node is approved from the state that its reader saw, with a workflow to choose", () => {
  const [approve] = of("discovered");
  expect(approve).toMatchObject({
    says: "n-1: discovered → pending. Waits for its boot.",
    request: { id: "n-1", from: "discovered", state: "pending" },
    cli: "millwright node approve n-1",
  });
  expect(approve?.asks?.map(({ name, choices }) => [name, choices?.map(({ value }) => value)])).toEqual([
    ["workflowId", ["", "ubuntu"]],
    ["comment", undefined],
  ]);
});

test("what failed is tried again with its count at 0, as the command does it", () => {
  const [again] = of("install_failed");
  expect(again).toMatchObject({ request: { force: true }, cli: "millwright node retry n-1 --force" });
});

test("a node that waits for a boot can be expected", () => {
  expect(of("pending").map(({ label }) => label)).toEqual(["Expect its boot", "Retire"]);
});
