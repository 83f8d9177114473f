import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { FabricStatus } from "../../capabilities/rack/fabric.ts";
import type {
  ManagedFile,
  ManagedJob,
  ManagedNode,
  ManagedPlace,
  RackManager,
  Submitted,
} from "../../capabilities/rack/rack-manager.ts";
import { messageOf } from "../../kernel/errors.ts";
import { textAt } from "../transport/device-json.ts";
import { parseJson } from "../transport/http-answer.ts";
import { oneLine } from "../transport/one-line.ts";
import { createGrpcClient, type GrpcOptions } from "./grpc-client.ts";
import { NUMBERINGS, type Numbering, type RackManagerApi, SHAPES } from "./numbering.ts";
import { decode, encode, type Message, type Shape } from "./wire.ts";

export interface RackManagerOptions extends GrpcOptions {
  readonly api: RackManagerApi;
}

export interface RackManagerClient extends RackManager {
  close(): void;
}

const SERVICE = "/rack_manager.RackManager/";
const LONGEST_MESSAGE = 300;
const LONGEST_JOB = 256;

/** A rack manager over gRPC, in one of its two numberings. Its failures come in band: a call that succeeds may say FAILURE. */
export function createRackManager({ api, ...options }: RackManagerOptions): RackManagerClient {
  const numbering = NUMBERINGS[api];
  const grpc = createGrpcClient(options);

  async function ask(
    method: keyof Numbering["methods"],
    { request, answer, message }: { request: Shape; answer: Shape; message: Message },
    call: CallContext,
  ): Promise<Message> {
    const path = `${SERVICE}${numbering.methods[method]}`;
    const bytes = await grpc.call(path, encode(request, message), call);
    try {
      return decode(answer, bytes);
    } catch (error) {
      throw new DeviceFailure("protocol", "rack_manager", `the rack manager: ${path}: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** A missing number is zero. */
  const isSuccess = ({ status = 0 }: { readonly status?: unknown }): boolean => status === numbering.success;
  const nodesOf = (all: readonly ManagedNode[]) => ({ nodes: all.map((each) => nodeOf(numbering, each)) });

  return {
    async submitFirmware(nodes, files, call) {
      const [first] = nodes;
      if (first === undefined) return new Map();
      const targets = new Map([[numbering.nodeTypes[first.kind], { targets: files.map(fileOf) }]]);
      const message = { nodes: nodesOf(nodes), firmware_targets: targets, activate: true };
      const shapes = { request: SHAPES.updateFirmware, answer: SHAPES.submitted, message };
      return submittedIn(await ask("updateFirmware", shapes, call), nodes);
    },

    async readJob({ id, node }, call) {
      const shapes = { request: SHAPES.onJob, answer: SHAPES.job, message: { job_id: id } };
      const job = await ask("firmwareJob", shapes, call);
      const said = (name: string) => oneLine(String(job[name] ?? ""), LONGEST_MESSAGE);
      // A lookup that failed says nothing of the job.
      if (!isSuccess(job))
        throw new DeviceFailure(
          "busy",
          "rack_manager",
          `the rack manager cannot tell of job ${id}: ${said("error_message")}`,
        );
      checkIsOf(job, { id, node });
      const state = numbering.jobStates.get(Number(job.job_state ?? 0)) ?? "running";
      const message = said("error_message") || said("state_description");
      return { id, state, percent: percentIn(said("state_description")), message, targets: [] };
    },

    async readPlaces(nodes, call) {
      const shapes = { request: SHAPES.onNodes, answer: SHAPES.places, message: { nodes: nodesOf(nodes) } };
      const answer = await ask("deviceInfo", shapes, call);
      if (!isSuccess(answer)) throw refused("the places of devices", answer);
      return new Map(listIn(answer, "node_device_info").map((each) => [String(each.node_id ?? ""), placeIn(each)]));
    },

    async configureFabric(primary, topology, call) {
      const message = { device: nodeOf(numbering, primary), topology_type: topology };
      const shapes = { request: SHAPES.configureFabric, answer: SHAPES.configured, message };
      const answer = await ask("configureFabric", shapes, call);
      if (!isSuccess(answer)) throw refused("the configuration of the fabric", answer);
    },

    async readFabric(nodes, call) {
      const shapes = { request: SHAPES.onNodes, answer: SHAPES.fabric, message: { nodes: nodesOf(nodes) } };
      const answer = await ask("fabricStatus", shapes, call);
      const services = (answer.services ?? new Map()) as ReadonlyMap<string, Message>;
      return new Map([...services].map(([id, service]) => [id, fabricIn(service)]));
    },

    close: () => grpc.close(),
  };
}

/** What is told of another job, or of another device, is not what was asked for. */
function checkIsOf({ job_id: job, node_id: shown }: Message, { id, node }: ManagedJob): void {
  const isOther = (told: unknown, asked: string) => told !== undefined && told !== "" && told !== asked;
  if (!isOther(job, id) && !isOther(shown, node)) return;
  const told = oneLine(`job ${String(job ?? id)} of ${String(shown ?? node)}`, LONGEST_MESSAGE);
  throw new DeviceFailure(
    "protocol",
    "rack_manager",
    `the rack manager was asked for job ${id} of ${node}, and told of ${told}`,
  );
}

/** There is no field for it: where it is known, it is in the description of the state. */
function percentIn(text: string): number | null {
  const [, digits] = /(?:^|[^\d.])(\d{1,3})(?:\.\d+)?\s?%/.exec(text) ?? [];
  return digits === undefined || Number(digits) > 100 ? null : Number(digits);
}

const fileOf = ({ target, filename }: ManagedFile): Message => ({ target, filename });

const nodeOf = ({ nodeTypes }: Numbering, { id, rackId, kind, bmc }: ManagedNode): Message => ({
  node_id: id,
  rack_id: rackId,
  type: nodeTypes[kind],
  bmc_endpoint: {
    interface: { ip_address: bmc.address, ...(bmc.mac !== null && { mac_address: bmc.mac }) },
    port: bmc.port,
    credentials: { user_pass: { username: bmc.username, password: bmc.password } },
  },
});

const listIn = (message: Message, name: string): readonly Message[] => (message[name] ?? []) as readonly Message[];

const refused = (what: string, { message }: Message): DeviceFailure =>
  new DeviceFailure(
    "refused_by_device",
    "rack_manager",
    `the rack manager refused ${what}: ${oneLine(String(message ?? ""), LONGEST_MESSAGE) || "it does not say why"}`,
  );

/** A device that the answer gives no job has none, whatever the answer says of the batch. */
function submittedIn(answer: Message, nodes: readonly ManagedNode[]): ReadonlyMap<string, Submitted> {
  const jobs = new Map(listIn(answer, "node_jobs").map((each) => [each.node_id, jobIn(each)]));
  const batch = (answer.response ?? {}) as Message;
  const errors = new Map(listIn(batch, "node_results").map((each) => [each.node_id, String(each.error_message ?? "")]));
  return new Map(
    nodes.map(({ id }): [string, Submitted] => {
      const job = jobs.get(id);
      if (job) return [id, { job }];
      const why = oneLine(errors.get(id) || String(batch.message ?? ""), LONGEST_MESSAGE);
      return [id, { error: why || "the rack manager gave no job for it" }];
    }),
  );
}

/** Ids are kept and shown: what cannot be one is none. */
function jobIn({ job_id: job }: Message): string {
  if (typeof job !== "string" || job.length > LONGEST_JOB || oneLine(job, LONGEST_JOB) !== job) return "";
  return job;
}

const placeIn = ({ slot_number: slot, tray_index: index }: Message): ManagedPlace => ({
  slot: typeof slot === "number" ? slot : null,
  trayIndex: typeof index === "number" ? index : null,
});

const STATES: Readonly<Record<string, FabricStatus["state"]>> = { ok: "ok", "not ok": "not_ok", not_ok: "not_ok" };

/** The switch's own status, as JSON in text. */
function fabricIn({ status_json: json, error_message: error }: Message): FabricStatus {
  const status = parseJson(String(json ?? ""));
  const word = textAt(status, "status")?.toLowerCase() ?? "";
  return {
    state: Object.hasOwn(STATES, word) ? (STATES[word] ?? "unknown") : "unknown",
    additionInfo: textAt(status, "addition-info") ?? textAt(status, "addition_info") ?? null,
    reason: textAt(status, "reason") ?? null,
    error: typeof error === "string" && error !== "" ? oneLine(error, LONGEST_MESSAGE) : null,
  };
}
