import { describe, expect, test } from "vitest";
import { AppError } from "../../kernel/errors.ts";
import { deviceOfBoard, parseFirmwareConfig } from "./firmware-config.ts";

const HEX = "ab".repeat(32);
const location = (change = {}) => ({
  Location: "https://files.example/a/bmc.fwpkg",
  Type: "Firmware",
  Sha256: HEX,
  ...change,
});
const firmware = (change = {}) => ({ Component: "BMC", Version: "1.2", Locations: [location()], ...change });
const board = (Type: string, ...Firmware: object[]) => ({ Type, Components: { Firmware } });
const read = (...BoardSKUs: object[]) => parseFirmwareConfig(JSON.stringify({ Id: "fw-v2.1", BoardSKUs }));
const refusalOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError && error.kind === "invalid_argument") return error.message;
    throw error;
  }
  return "accepted";
};

describe("a document of firmware", () => {
  test("gives the components of trays, switches and shelves, with where their files come from", () => {
    const { id, components } = read(
      board("Compute Node", firmware({ Targets: ["/redfish/v1/Chassis/HGX"] })),
      board("Power Shelf", firmware({ Component: "PSU", Activation: "power_cycle" })),
    );
    expect(id).toBe("fw-v2.1");
    expect(components).toEqual([
      {
        device: "compute",
        component: "bmc",
        class: "prod",
        version: "1.2",
        digest: `sha256:${HEX}`,
        targets: ["/redfish/v1/Chassis/HGX"],
        activation: "bmc_reset",
        order: expect.any(Number),
        file: { name: "bmc.fwpkg", url: "https://files.example/a/bmc.fwpkg", bytes: null, sign: "bearer" },
      },
      expect.objectContaining({ device: "power_shelf", component: "psu", activation: "power_cycle" }),
    ]);
  });

  test("orders what is written first: of switches bmc, fpga, erot, bios; of trays the HGX before the BMC", () => {
    const orderOf = (type: string, ...names: string[]) =>
      read(board(type, ...names.map((Component) => firmware({ Component }))))
        .components.toSorted((a, b) => a.order - b.order)
        .map(({ component }) => component);
    expect(orderOf("Switch Tray", "CPLD", "BIOS", "EROT", "FPGA", "BMC")).toEqual([
      "bmc",
      "fpga",
      "erot",
      "bios",
      "cpld",
    ]);
    expect(orderOf("Compute Node", "NIC", "BMC", "HGX_BMC")).toEqual(["hgx_bmc", "bmc", "nic"]);
  });

  test("knows packages by the first of what they hold, and the class by Type", () => {
    const { components } = read(
      board(
        "Switch Tray",
        firmware({ Component: "BMC+FPGA+EROT" }),
        firmware({ Component: "SBIOS+EROT", Type: "Dev" }),
      ),
    );
    expect(components.map((each) => [each.component, each.class])).toEqual([
      ["bmc", "prod"],
      ["bios", "dev"],
    ]);
  });

  test("leaves out what is no firmware of a device that we know", () => {
    const { components } = read(
      board("Midplane", firmware()),
      board(
        "Compute Node",
        firmware({ Locations: [location({ Type: "Certificate" })] }),
        firmware({ Component: "BIOS" }),
      ),
    );
    expect(components.map(({ component }) => component)).toEqual(["bios"]);
  });

  test("says how Artifactory wants its key", () => {
    const { components } = read(
      board("Compute Node", firmware({ Locations: [location({ LocationType: "Artifactory" })] })),
    );
    expect(components[0]?.file.sign).toBe("artifactory");
  });

  test.each<[string, () => unknown, string]>([
    ["that is no JSON", () => parseFirmwareConfig("{"), "is not JSON"],
    [
      "without an Id",
      () => parseFirmwareConfig(JSON.stringify({ BoardSKUs: [board("Compute Node", firmware())] })),
      "Id",
    ],
    ["without boards", () => parseFirmwareConfig(JSON.stringify({ Id: "a" })), "BoardSKUs"],
    ["without firmware", () => read(board("Midplane", firmware())), "no firmware of a"],
    [
      "without a digest",
      () => read(board("Compute Node", firmware({ Locations: [location({ Sha256: undefined })] }))),
      "Sha256 is missing",
    ],
    [
      "with a wrong digest",
      () => read(board("Compute Node", firmware({ Locations: [location({ Sha256: "12" })] }))),
      "64 hexadecimal",
    ],
    ["without a version", () => read(board("Compute Node", firmware({ Version: undefined }))), "Version is missing"],
    [
      "with a file of the server",
      () => read(board("Compute Node", firmware({ Locations: [location({ Location: "file:///etc/passwd" })] }))),
      "http or https URL",
    ],
    [
      "with a path",
      () => read(board("Compute Node", firmware({ Locations: [location({ Location: "/etc/passwd" })] }))),
      "http or https URL",
    ],
    [
      "with a password in an address",
      () => read(board("Compute Node", firmware({ Locations: [location({ Location: "https://a:b@c/d" })] }))),
      "user or password",
    ],
    ["with an unknown class", () => read(board("Compute Node", firmware({ Type: "Beta" }))), "Prod or Dev"],
    ["with a component twice", () => read(board("Compute Node", firmware(), firmware())), "is in it twice"],
    [
      "with one digest of two sizes",
      () =>
        read(board("Compute Node", firmware(), firmware({ Component: "BIOS", Locations: [location({ Size: 7 })] }))),
      "two sizes",
    ],
  ])("%s is refused", (_, act, why) => {
    expect(refusalOf(act)).toContain(why);
  });

  test("gives files names that can be part of an address", () => {
    const nameOf = (change: object) =>
      read(board("Compute Node", firmware({ Locations: [location(change)] }))).components[0]?.file.name;
    expect(nameOf({ FileName: "../../a b/ü.fwpkg" })).toBe("_.fwpkg");
    expect(nameOf({ Location: "https://files.example/" })).toBe("firmware.bin");
  });
});

test.each([
  ["Compute Node", "compute"],
  ["VRNVL72 Compute Node", "compute"],
  ["Switch Tray", "switch"],
  ["Power Shelf", "power_shelf"],
  ["Midplane", undefined],
])("a board %s is a %s", (type, device) => expect(deviceOfBoard(type)).toBe(device));
