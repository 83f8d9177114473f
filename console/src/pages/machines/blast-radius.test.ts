import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { MachineSchema } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { blastRadiusOf } from "./blast-radius.ts";

test("what machines reach is each named once, and those that are held are named", () => {
  const machines = [
    create(MachineSchema, { machineId: "m-2", spec: { rack: "r-1", customerId: "acme", targetClusterRef: "c-1" } }),
    create(MachineSchema, {
      machineId: "m-1",
      spec: { rack: "r-1", targetClusterRef: "c-1" },
      status: { activeRunId: "run-1" },
    }),
    create(MachineSchema, { machineId: "m-3" }),
  ];
  expect(blastRadiusOf(machines)).toEqual({
    ...{ machines: 3, racks: ["r-1"], customers: ["acme"], clusters: ["c-1"], held: ["m-1"] },
  });
});
