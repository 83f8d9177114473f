import type { Fields } from "./wire.ts";

/** The two numberings of the rack manager's messages, which contradict each other. */
export const RACK_MANAGER_APIS = ["d", "h"] as const;
export type RackManagerApi = (typeof RACK_MANAGER_APIS)[number];

export type RackManagerCall =
  | "updateFirmware"
  | "firmwareJob"
  | "deviceInfo"
  | "configureFabric"
  | "fabricStatus"
  | "updateSwitchImage"
  | "switchImageJob";

interface Method {
  readonly name: string;
  readonly request: Fields;
  readonly response: Fields;
}

/** What differs, by its meaning. */
interface Words {
  readonly code: { readonly success: number; readonly failure: number };
  readonly job: {
    readonly queued: number;
    readonly running: number;
    readonly completed: number;
    readonly failed: number;
  };
  readonly type: { readonly compute: number; readonly power_shelf: number; readonly switch: number };
}

export interface Numbering {
  readonly methods: Readonly<Partial<Record<RackManagerCall, Method>>>;
  readonly words: Words;
}

const port: Fields = { ip_address: [1, "string"], mac_address: [2, "string"] };
const credentials: Fields = { user_pass: [1, { username: [1, "string"], password: [2, "string"] }] };
const endpoint: Fields = { interface: [1, port], port: [2, "int"], credentials: [3, credentials] };
const node: Fields = {
  node_id: [1, "string"],
  rack_id: [2, "string"],
  type: [3, "int"],
  bmc_endpoint: [4, endpoint],
};
const nodes: Fields = { nodes: [1, node, "repeated"] };
const nodeResult: Fields = { node_id: [1, "string"], status: [2, "int"], error_message: [3, "string"] };
const nodeJob: Fields = { node_id: [1, "string"], job_id: [2, "string"] };
const targets: Fields = { targets: [1, { target: [1, "string"], filename: [2, "string"] }, "repeated"] };
const place: Fields = { node_id: [1, "string"], slot_number: [3, "int"], tray_index: [4, "int"] };
const said: Fields = { status_json: [1, "string"], error_message: [2, "string"] };

const batch = (counts: Fields): Fields => ({
  status: [2, "int"],
  message: [3, "string"],
  ...counts,
  node_results: [7, nodeResult, "repeated"],
  job_id: [8, "string"],
});
const COUNTS: Readonly<Record<RackManagerApi, Fields>> = {
  d: { total_nodes: [4, "int"], successful_nodes: [5, "int"], failed_nodes: [6, "int"] },
  h: { stats: [9, { total: [1, "int"], successful: [2, "int"], failed: [3, "int"] }] },
};

const updateFirmware: Fields = {
  nodes: [2, nodes],
  firmware_targets: [3, targets, { keys: "int" }],
  activate: [4, "bool"],
  force_update: [5, "bool"],
};
const firmwareJob = (time: Fields): Fields => ({
  status: [2, "int"],
  job_id: [3, "string"],
  job_state: [4, "int"],
  state_description: [5, "string"],
  rack_id: [6, "string"],
  node_id: [7, "string"],
  error_code: [8, "int"],
  error_message: [9, "string"],
  result_json: [10, "string"],
  ...time,
});
const onNodes: Fields = { nodes: [2, nodes] };
const onJob: Fields = { job_id: [2, "string"] };
const configureFabric: Fields = { device: [2, node], topology_type: [3, "string"] };
const fabricConfigured: Fields = {
  status: [2, "int"],
  message: [3, "string"],
  topology_used: [4, "string"],
  fabric_state_enabled: [5, "bool"],
  grpc_enabled: [6, "bool"],
};
const fabricStatus: Fields = { status: [2, "int"], services: [3, said, { keys: "string" }] };
const deviceInfo: Fields = { status: [2, "int"], message: [3, "string"], node_device_info: [4, place, "repeated"] };
const jobs = (api: RackManagerApi): Fields => ({
  response: [1, batch(COUNTS[api])],
  node_jobs: [2, nodeJob, "repeated"],
});

export const NUMBERINGS: Readonly<Record<RackManagerApi, Numbering>> = {
  d: {
    words: {
      code: { success: 0, failure: 1 },
      job: { queued: 0, running: 1, completed: 2, failed: 3 },
      type: { compute: 1, power_shelf: 2, switch: 3 },
    },
    methods: {
      updateFirmware: { name: "UpdateFirmwareByDeviceList", request: updateFirmware, response: jobs("d") },
      firmwareJob: {
        name: "GetFirmwareJobStatus",
        request: onJob,
        response: firmwareJob({ created_at: [11, "int"], updated_at: [12, "int"] }),
      },
      deviceInfo: { name: "GetDeviceInfoByDeviceList", request: onNodes, response: deviceInfo },
      configureFabric: {
        name: "ConfigureScaleUpFabricManager",
        request: configureFabric,
        response: fabricConfigured,
      },
      fabricStatus: { name: "GetScaleUpFabricServicesStatus", request: onNodes, response: fabricStatus },
      updateSwitchImage: {
        name: "UpdateSwitchSystemImage",
        request: { nodes: [2, nodes], image_filename: [3, "string"], local_file_path: [4, "string"] },
        response: jobs("d"),
      },
      switchImageJob: {
        name: "GetSwitchSystemImageJobStatus",
        request: onJob,
        response: {
          status: [2, "int"],
          job_id: [3, "string"],
          state: [4, "string"],
          message: [5, "string"],
          rack_id: [6, "string"],
          node_id: [7, "string"],
          error_message: [8, "string"],
        },
      },
    },
  },
  h: {
    words: {
      code: { success: 1, failure: 2 },
      job: { queued: 1, running: 2, completed: 3, failed: 4 },
      type: { compute: 2, power_shelf: 3, switch: 4 },
    },
    methods: {
      updateFirmware: { name: "BatchUpdateFirmware", request: updateFirmware, response: jobs("h") },
      firmwareJob: {
        name: "GetFirmwareJobStatus",
        request: onJob,
        response: firmwareJob({ created_at: [11, { seconds: [1, "int"] }], updated_at: [12, { seconds: [1, "int"] }] }),
      },
      deviceInfo: { name: "BatchGetNodeDeviceInfo", request: onNodes, response: deviceInfo },
      configureFabric: {
        name: "ConfigureScaleUpFabricManager",
        request: configureFabric,
        response: fabricConfigured,
      },
      fabricStatus: { name: "BatchGetScaleUpFabricServiceStatus", request: onNodes, response: fabricStatus },
    },
  },
};
