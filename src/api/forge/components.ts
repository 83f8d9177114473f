import type { ServiceImpl } from "@connectrpc/connect";
import type { Forge } from "../../../contract/forge/forge_pb.js";
import { AppError } from "../../kernel/errors.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { applyRackFirmware, listAppliedFirmware } from "../../services/component/apply-firmware.ts";
import { readFirmwareJob, readFirmwareStatus } from "../../services/component/firmware-status.ts";
import { listFirmwareVersions } from "../../services/component/firmware-versions.ts";
import { readComponentInventory } from "../../services/component/inventory.ts";
import { controlComponentPower } from "../../services/component/power-control.ts";
import { updateComponentFirmware } from "../../services/component/update-firmware.ts";
import type { RunDeps } from "../../services/run/deps.ts";
import { required } from "../convert/fields.ts";
import { callerKey } from "../transport/interceptors.ts";
import {
  JOB_STATES,
  powerActionFrom,
  resultOf,
  statusOf,
  targetFrom,
  updateFrom,
  versionsOf,
} from "./component-messages.ts";

const BOARDS = { machine: "Compute Node", switch: "Switch", power_shelf: "Power Shelf" } as const;

export const forgeComponents = (deps: ServiceDeps & Partial<RunDeps>) =>
  ({
    async componentPowerControl({ target, action }, { values }) {
      const power = { ...targetFrom(target), action: powerActionFrom(action) };
      return { results: (await controlComponentPower(deps, values.get(callerKey), power)).map(resultOf) };
    },
    async getComponentInventory({ target }) {
      const outcomes = await readComponentInventory(deps, targetFrom(target));
      return { entries: outcomes.map((outcome) => ({ result: resultOf(outcome) })) };
    },
    async updateComponentFirmware(request, { values }) {
      const outcomes = await updateComponentFirmware(deps, values.get(callerKey), updateFrom(request));
      return { results: outcomes.map(resultOf) };
    },
    async getComponentFirmwareStatus({ target }) {
      return { statuses: (await readFirmwareStatus(deps, targetFrom(target))).map(statusOf) };
    },
    async listComponentFirmwareVersions({ target }) {
      return { devices: (await listFirmwareVersions(deps, targetFrom(target))).map(versionsOf) };
    },
    async applyRackFirmware({ rackId, firmwareId, firmwareType }, { values }) {
      const input = { rackId: required(rackId, "rack_id").id, firmwareId, firmwareType };
      const applied = await applyRackFirmware(deps, values.get(callerKey), input);
      return {
        totalUpdates: applied.length,
        successfulUpdates: applied.length,
        failedUpdates: 0,
        deviceResults: applied.map(({ deviceId, kind, jobId }) => ({
          deviceId,
          deviceType: BOARDS[kind],
          success: true,
          message: "requested",
          jobId,
          nodeJobs: [{ nodeId: deviceId, jobId }],
        })),
      };
    },
    async getRackFirmwareJobStatus({ jobId }) {
      if (jobId === "") throw new AppError("invalid_argument", "job_id: is required", { field: "job_id" });
      const job = await readFirmwareJob(deps, jobId);
      if (!job) throw new AppError("not_found", `job ${jobId.slice(0, 200)} does not exist`, { field: "job_id" });
      const { status, rackId, deviceId } = job;
      return {
        jobId,
        state: JOB_STATES[status.state],
        stateDescription: status.state,
        rackId,
        nodeId: deviceId,
        errorMessage: status.message,
        resultJson: JSON.stringify({ target_version: status.targetVersion }),
      };
    },
    async getRackFirmwareHistory({ firmwareId, rackIds }) {
      const found = await listAppliedFirmware(deps, { firmwareId, rackIds });
      return {
        histories: Object.fromEntries(
          [...found].map(([rackId, records]) => [
            rackId,
            {
              records: records.map((record) => ({
                firmwareId: record.firmwareId,
                rackId,
                firmwareType: record.firmwareType,
                appliedAt: record.at.toISOString(),
                firmwareAvailable: record.isAvailable,
                rackHardwareType: { value: record.hardwareType },
              })),
            },
          ]),
        ),
      };
    },
  }) satisfies Partial<ServiceImpl<typeof Forge>>;
