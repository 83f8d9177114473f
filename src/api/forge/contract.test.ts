/** The forge contract, held against the tables of its specification: existing fleet tools depend on every number. */
import type { DescEnum, DescField, DescFile, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { file_common_common } from "../../../contract/common/common_pb.js";
import { file_forge_component } from "../../../contract/forge/component_pb.js";
import { file_forge_expected } from "../../../contract/forge/expected_pb.js";
import { file_forge_firmware } from "../../../contract/forge/firmware_pb.js";
import { Forge, file_forge_forge } from "../../../contract/forge/forge_pb.js";
import { file_forge_rack } from "../../../contract/forge/rack_pb.js";
import { file_forge_shared } from "../../../contract/forge/shared_pb.js";
import { file_forge_switch } from "../../../contract/forge/switch_pb.js";
import { file_health_health } from "../../../contract/health/health_pb.js";
import { COMPONENT, COMPONENT_METHODS } from "../../../test/support/forge-contract/component.ts";
import { EXPECTED, EXPECTED_METHODS } from "../../../test/support/forge-contract/expected.ts";
import { FIRMWARE, FIRMWARE_METHODS } from "../../../test/support/forge-contract/firmware.ts";
import { FORGE, FORGE_METHODS } from "../../../test/support/forge-contract/forge.ts";
import { COMMON, HEALTH } from "../../../test/support/forge-contract/ids-and-health.ts";
import { RACK, RACK_METHODS } from "../../../test/support/forge-contract/rack.ts";
import { SHARED } from "../../../test/support/forge-contract/shared.ts";
import { SWITCH, SWITCH_METHODS } from "../../../test/support/forge-contract/switch.ts";

/** One table a proto file; its methods are beside its messages. */
const METHODS = {
  ...EXPECTED_METHODS,
  ...FIRMWARE_METHODS,
  ...FORGE_METHODS,
  ...SWITCH_METHODS,
  ...RACK_METHODS,
  ...COMPONENT_METHODS,
};

describe("the contract forge", () => {
  test("has the specified methods, none of which is a stream", () => {
    const methods = Forge.methods.map(({ name, input, output }) => [
      name,
      `${nameFrom("forge", input)} → ${nameFrom("forge", output)}`,
    ]);
    expect(Object.fromEntries(methods)).toEqual(METHODS);
    expect(Forge.methods.filter(({ methodKind }) => methodKind !== "unary")).toEqual([]);
    expect(Forge.typeName).toBe("forge.Forge");
  });

  describe.each<[DescFile, Readonly<Record<string, string>>]>([
    [file_forge_forge, FORGE],
    [file_forge_shared, SHARED],
    [file_forge_rack, RACK],
    [file_forge_switch, SWITCH],
    [file_forge_expected, EXPECTED],
    [file_forge_firmware, FIRMWARE],
    [file_forge_component, COMPONENT],
    [file_common_common, COMMON],
    [file_health_health, HEALTH],
  ])("in $name.proto", (file, specified) => {
    const ours = new Map([...file.messages, ...file.enums].map((type) => [type.name, type]));

    test("has the specified messages and enums, and no others", () => {
      expect([...ours.keys()].toSorted()).toEqual(Object.keys(specified).toSorted());
      expect(file.extensions).toEqual([]);
    });

    test.each(Object.entries(specified))("gives %s its numbers", (name, text) => {
      const type = ours.get(name);
      expect(type && (type.kind === "enum" ? describeEnum(type) : describeMessage(type))).toBe(text);
    });
  });
});

function describeMessage(message: DescMessage): string {
  const fields = message.fields.map((field) => `${field.name}=${field.number} ${describeType(field)}`);
  // The end of a reserved range is the first number that is free.
  const reserved = message.proto.reservedRange.flatMap(({ start, end }) =>
    Array.from({ length: end - start }, (_, index) => start + index),
  );
  return [...fields, ...(reserved.length > 0 ? [`reserved ${reserved.join(", ")}`] : [])].join("; ");
}

const describeEnum = ({ values }: DescEnum): string => values.map(({ name, number }) => `${name}=${number}`).join(", ");

function describeType(field: DescField): string {
  const from = field.parent.file.proto.package;
  if (field.fieldKind === "map") {
    const value = field.message === undefined ? scalarName(field.scalar) : nameFrom(from, field.message);
    return `map<${scalarName(field.mapKey)}, ${value}>`;
  }
  const presence = field.fieldKind === "list" ? "repeated " : field.proto.proto3Optional ? "optional " : "";
  const type = field.message ?? field.enum;
  const oneof = field.oneof === undefined ? "" : ` (oneof ${field.oneof.name})`;
  return `${presence}${type === undefined ? scalarName(field.scalar) : nameFrom(from, type)}${oneof}`;
}

/** As a file of the package writes it. */
const nameFrom = (from: string, { typeName }: DescMessage | DescEnum): string =>
  typeName.startsWith(`${from}.`) ? typeName.slice(from.length + 1) : typeName;

const scalarName = (type: ScalarType | undefined): string =>
  type === undefined ? "?" : (ScalarType[type]?.toLowerCase() ?? "?");
