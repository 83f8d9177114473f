import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  ComputeTrayComponent,
  ComponentManagerStatusCode as Status,
  type UpdateComponentFirmwareRequest,
} from "../../../../contract/forge/component_pb.js";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const asked: UpdateComponentFirmwareRequest[] = [];
const serving =
  (status = Status.SUCCESS) =>
  (router: ConnectRouter) =>
    router.service(Forge, {
      updateComponentFirmware(request) {
        asked.push(request);
        return {
          results: [{ componentId: "machine-001", status, error: status === Status.SUCCESS ? "" : "rack-42 is busy" }],
        };
      },
    });
const LINE = "component firmware update --compute-trays machine-001,machine-002 machine-003 --target-version fw-v2.1";

describe("component firmware update", () => {
  test("names trays by commas or spaces, and says what came of each", async () => {
    const { code, out } = await runAgainst(serving(), `${LINE} --components bmc,cpld-mb -o json`);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject([{ component_id: "machine-001" }]);
    expect(asked.at(-1)).toMatchObject({
      targetVersion: "fw-v2.1",
      target: {
        case: "computeTrays",
        value: {
          machineIds: { machineIds: ["machine-001", "machine-002", "machine-003"].map((id) => ({ id })) },
          components: [ComputeTrayComponent.BMC, ComputeTrayComponent.CPLD_MB],
        },
      },
    });
  });

  test("exits with 1 when a device was refused", async () => {
    const { code, out } = await runAgainst(serving(Status.INVALID_ARGUMENT), LINE);
    expect(code).toBe(1);
    expect(out).toContain("rack-42 is busy");
  });

  test.each([
    ["component firmware update --target-version x", "give one of --compute-trays"],
    ["component firmware update --racks r --switches s", "give one of"],
    ["component firmware update --compute-trays a --components fan", "fan is none of"],
  ])("`%s` is refused", async (line, why) => {
    const { code, err } = await runAgainst(serving(), line);
    expect(code).not.toBe(0);
    expect(err).toContain(why);
  });
});
