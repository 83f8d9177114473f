import { create } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { subsetOf } from "./contract-subset.ts";
import { servedServices } from "./served-services.ts";

test("the services that are served are those of the routes, with health and reflection", () => {
  expect([...servedServices()]).toEqual(
    expect.arrayContaining(["forge.Forge", "millwright.v1.SystemService", "grpc.health.v1.Health"]),
  );
});

test("what only services use that are not served is left out, and what is used in a roundabout way stays", () => {
  const file = create(FileDescriptorProtoSchema, {
    package: "p",
    service: [
      { name: "Served", method: [{ name: "Do", inputType: ".p.Ask", outputType: ".p.Tell" }] },
      { name: "Planned", method: [{ name: "Do", inputType: ".p.Later", outputType: ".p.Tell" }] },
    ],
    messageType: [
      { name: "Ask", field: [{ name: "inner", typeName: ".p.Outer.Inner" }] },
      { name: "Outer", nestedType: [{ name: "Inner", field: [{ name: "self", typeName: ".p.Outer.Inner" }] }] },
      {
        name: "Tell",
        field: [
          { name: "word", typeName: ".p.Word" },
          { name: "at", typeName: ".google.protobuf.Timestamp" },
        ],
      },
      { name: "Later" },
      { name: "Detail" },
    ],
    enumType: [{ name: "Word" }, { name: "OtherWord" }],
  });
  const kept = subsetOf([file], { services: new Set(["p.Served"]), messages: ["p.Detail"] });
  expect([...kept].sort()).toEqual(["p.Ask", "p.Detail", "p.Outer.Inner", "p.Served", "p.Tell", "p.Word"]);
});
