import type { ManagedNode } from "../../capabilities/rack/rack-manager.ts";
import type { DeviceTask } from "../../capabilities/rack/tasks.ts";
import type { Field, Shape } from "./wire.ts";

/** Two versions of the rack manager's API, whose numbers contradict each other: only the operator can say which one answers. */
export type RackManagerApi = "d" | "h";

/** What one version calls things, and which numbers it has for them. */
export interface Numbering {
  readonly methods: Readonly<
    Record<"updateFirmware" | "firmwareJob" | "deviceInfo" | "configureFabric" | "fabricStatus", string>
  >;
  readonly success: number;
  readonly nodeTypes: Readonly<Record<ManagedNode["kind"], number>>;
  /** Numbers that are not here are of a version that nobody knows: the job goes on. */
  readonly jobStates: ReadonlyMap<number, DeviceTask["state"]>;
}

export const NUMBERINGS: Readonly<Record<RackManagerApi, Numbering>> = {
  d: {
    methods: {
      updateFirmware: "UpdateFirmwareByDeviceList",
      firmwareJob: "GetFirmwareJobStatus",
      deviceInfo: "GetDeviceInfoByDeviceList",
      configureFabric: "ConfigureScaleUpFabricManager",
      fabricStatus: "GetScaleUpFabricServicesStatus",
    },
    success: 0,
    nodeTypes: { compute: 1, power_shelf: 2, switch: 3 },
    jobStates: new Map([
      [0, "running"],
      [1, "running"],
      [2, "completed"],
      [3, "failed"],
    ]),
  },
  h: {
    methods: {
      updateFirmware: "BatchUpdateFirmware",
      firmwareJob: "GetFirmwareJobStatus",
      deviceInfo: "BatchGetNodeDeviceInfo",
      configureFabric: "ConfigureScaleUpFabricManager",
      fabricStatus: "BatchGetScaleUpFabricServiceStatus",
    },
    success: 1,
    nodeTypes: { compute: 2, power_shelf: 3, switch: 4 },
    jobStates: new Map([
      [1, "running"],
      [2, "running"],
      [3, "completed"],
      [4, "failed"],
    ]),
  },
};

const text = (no: number): Field => ({ no, as: "text" });
const number = (no: number): Field => ({ no, as: "number" });

const endpoint: Shape = {
  interface: { no: 1, as: { ip_address: text(1), mac_address: text(2) } },
  port: number(2),
  credentials: { no: 3, as: { user_pass: { no: 1, as: { username: text(1), password: text(2) } } } },
};
const node: Shape = { node_id: text(1), rack_id: text(2), type: number(3), bmc_endpoint: { no: 4, as: endpoint } };
const nodes: Field = { no: 2, as: { nodes: { no: 1, as: node, many: "list" } } };
const files: Shape = { targets: { no: 1, as: { target: text(1), filename: text(2) }, many: "list" } };
const result: Shape = { node_id: text(1), status: number(2), error_message: text(3) };

/** The messages, which both versions write alike as far as we use them. */
export const SHAPES = {
  onNodes: { nodes },
  updateFirmware: {
    nodes,
    firmware_targets: { no: 3, as: files, many: "by_number" },
    activate: { no: 4, as: "flag" },
  },
  submitted: {
    response: {
      no: 1,
      as: { status: number(2), message: text(3), node_results: { no: 7, as: result, many: "list" } },
    },
    node_jobs: { no: 2, as: { node_id: text(1), job_id: text(2) }, many: "list" },
  },
  onJob: { job_id: text(2) },
  job: {
    status: number(2),
    job_id: text(3),
    job_state: number(4),
    state_description: text(5),
    node_id: text(7),
    error_message: text(9),
  },
  places: {
    status: number(2),
    message: text(3),
    node_device_info: { no: 4, as: { node_id: text(1), slot_number: number(3), tray_index: number(4) }, many: "list" },
  },
  configureFabric: { device: { no: 2, as: node }, topology_type: text(3) },
  configured: { status: number(2), message: text(3) },
  fabric: {
    status: number(2),
    services: { no: 3, as: { status_json: text(1), error_message: text(2) }, many: "by_text" },
  },
} as const satisfies Readonly<Record<string, Shape>>;
