import { HEAD_BYTES, readImage } from "../devices/firmware/firmware-image.ts";
import type { ManagedDevice } from "../devices/managed-device.ts";
import type { Switch } from "../devices/switch.ts";
import { sha256Of } from "../redfish/fetch-medium.ts";
import { imageNamed } from "../site/firmware.ts";
import { NUMBERINGS, type Numbering, type RackManagerApi, type RackManagerCall } from "./numbering.ts";
import type { Message } from "./wire.ts";

/** How it is told of a management controller: either may be empty. The MAC address, in lower case, goes first. */
export interface Controller {
  readonly mac: string;
  readonly address: string;
}

/** What it needs of the racks that it manages. */
export interface ManagedRacks {
  deviceAt(controller: Controller): ManagedDevice | undefined;
  switchAt(controller: Controller): Switch | undefined;
  /** Starts what was flashed. */
  activate(device: ManagedDevice): void;
  /** Asked for each job when it is taken: the fault that stops it, if any. */
  stoppedBy(device: string): string | undefined;
  isFaultPresent(id: string): boolean;
}

interface Node {
  readonly node_id?: string;
  readonly rack_id?: string;
  readonly type?: number;
  readonly bmc_endpoint?: {
    readonly interface?: { readonly mac_address?: string; readonly ip_address?: string };
  };
}

interface Job {
  readonly id: string;
  readonly node: Node;
  readonly device: ManagedDevice;
  readonly activates: boolean;
  /** It stands still while this fault is there. */
  readonly stoppedBy: string | undefined;
  /** Files that are still to be written, the next one first. */
  files: readonly string[];
  /** The task of the flash that is under way. */
  task: number | null;
  ended: { readonly ok: boolean; readonly why: string } | null;
}

const nodesOf = (request: Message): readonly Node[] =>
  ((request.nodes as { nodes?: Node[] } | undefined)?.nodes ?? []) as readonly Node[];
const controllerOf = ({ bmc_endpoint: { interface: at } = {} }: Node): Controller => ({
  mac: (at?.mac_address ?? "").toLowerCase(),
  address: at?.ip_address ?? "",
});

/** One call that it was sent, for tests that count them. */
export interface CallSeen {
  readonly call: RackManagerCall;
  readonly nodes: readonly string[];
}

/**
 * The rack manager of a site: takes firmware for many devices at once as jobs, and configures the fabric.
 *
 * It writes to the devices' own firmware, so that what it did is in their logs. Jobs go on when somebody asks for them.
 */
export class RackManager {
  readonly numbering: Numbering;
  readonly seen: CallSeen[] = [];
  readonly #racks: ManagedRacks;
  readonly #jobs = new Map<string, Job>();

  constructor(api: RackManagerApi, racks: ManagedRacks) {
    this.numbering = NUMBERINGS[api];
    this.#racks = racks;
  }

  answer(call: RackManagerCall, request: Message): Message {
    const nodes = call === "configureFabric" ? [(request.device ?? {}) as Node] : nodesOf(request);
    this.seen.push({ call, nodes: nodes.map(({ node_id }) => node_id ?? "") });
    switch (call) {
      case "updateFirmware":
        return this.#update(nodes, (node) => this.#filesFor(request, node), request.activate === true);
      case "updateSwitchImage":
        return this.#update(nodes, () => [String(request.image_filename ?? "")], true);
      case "firmwareJob":
        return this.#job(String(request.job_id ?? ""), "job_state", this.numbering.words.job);
      case "switchImageJob":
        return this.#job(String(request.job_id ?? ""), "state", IMAGE_STATES);
      case "deviceInfo":
        return this.#places(nodes);
      case "configureFabric":
        return this.#configure(nodes[0] ?? {}, String(request.topology_type ?? ""));
      case "fabricStatus":
        return this.#fabric(nodes);
    }
  }

  #update(nodes: readonly Node[], filesOf: (node: Node) => readonly string[], activates: boolean): Message {
    const taken = nodes.map((node) => ({ node, ...this.#take(node, filesOf(node), activates) }));
    const { success, failure } = this.numbering.words.code;
    const failed = taken.filter(({ job }) => job === undefined).length;
    return {
      response: {
        status: failed === 0 ? success : failure,
        message: failed === 0 ? "" : `${failed} of ${nodes.length} nodes were refused`,
        total_nodes: nodes.length,
        successful_nodes: nodes.length - failed,
        failed_nodes: failed,
        stats: { total: nodes.length, successful: nodes.length - failed, failed },
        node_results: taken.map(({ node, job, why }) => ({
          node_id: node.node_id ?? "",
          status: job === undefined ? failure : success,
          error_message: why,
        })),
      },
      node_jobs: taken.flatMap(({ node, job }) =>
        job === undefined ? [] : [{ node_id: node.node_id ?? "", job_id: job.id }],
      ),
    };
  }

  #take(node: Node, files: readonly string[], activates: boolean): { readonly job?: Job; readonly why: string } {
    const controller = controllerOf(node);
    const device = this.#racks.deviceAt(controller);
    if (device === undefined) return { why: `no device is at ${controller.mac || controller.address}` };
    const other = [...this.#jobs.values()].find((job) => job.device === device && this.#goOn(job).ended === null);
    if (other !== undefined) return { why: `the job ${other.id} is under way on this node` };
    if (files.length === 0) return { why: "there is nothing to write to this kind of node" };
    const missing = files.find((file) => imageNamed(file) === undefined);
    if (missing !== undefined) return { why: `there is no file ${missing}` };
    const stoppedBy = this.#racks.stoppedBy(device.spec.id);
    const id = `job-${this.#jobs.size + 1}`;
    const job: Job = { id, node, device, activates, stoppedBy, files, task: null, ended: null };
    this.#jobs.set(id, job);
    this.#goOn(job);
    return { job, why: "" };
  }

  /** Without `force_update` a device keeps what it has already. */
  #filesFor(request: Message, node: Node): readonly string[] {
    const files = filesFor(request, node);
    const firmware = this.#racks.deviceAt(controllerOf(node))?.firmware;
    if (firmware === undefined || request.force_update === true) return files;
    const isCurrent = (file: string): boolean => {
      const content = imageNamed(file);
      const image = content && readImage(content.subarray(0, HEAD_BYTES), { bytes: 0, digest: "" });
      return image !== undefined && "version" in image && firmware.version(image.component) === image.version;
    };
    const missing = files.filter((file) => !isCurrent(file));
    return missing.length > 0 ? missing : files;
  }

  /** Writes the next file once the one before it has been written. */
  #goOn(job: Job): Job {
    if (job.ended !== null || (job.stoppedBy !== undefined && this.#racks.isFaultPresent(job.stoppedBy))) return job;
    const flash = job.device.firmware.flashes.find(({ task }) => task === job.task);
    if (flash?.outcome === "running") return job;
    if (flash?.outcome === "failed") {
      job.ended = { ok: false, why: flash.why ?? "" };
      return job;
    }
    const [next, ...later] = job.files;
    if (next === undefined) {
      if (job.activates) this.#racks.activate(job.device);
      job.ended = { ok: true, why: "" };
      return job;
    }
    const content = imageNamed(next) ?? Buffer.alloc(0);
    const image = readImage(content.subarray(0, HEAD_BYTES), { bytes: content.length, digest: sha256Of(content) });
    const begun = job.device.firmware.update({ way: "push", targets: [], image });
    if (begun === undefined) return job;
    job.task = begun.task;
    job.files = later;
    return job;
  }

  #job<State>(
    id: string,
    stateField: string,
    states: Readonly<Record<"running" | "completed" | "failed", State>>,
  ): Message {
    const { success, failure } = this.numbering.words.code;
    const job = this.#jobs.get(id);
    if (job === undefined) return { status: failure, job_id: id, error_message: `there is no job ${id}` };
    const { ended } = this.#goOn(job);
    const state = ended === null ? states.running : ended.ok ? states.completed : states.failed;
    return {
      status: success,
      job_id: id,
      [stateField]: state,
      state_description: ended === null ? describeProgress(job) : "",
      rack_id: job.node.rack_id ?? "",
      node_id: job.node.node_id ?? "",
      error_message: ended?.why ?? "",
    };
  }

  #places(nodes: readonly Node[]): Message {
    const places = nodes.flatMap((node) => {
      const device = this.#racks.deviceAt(controllerOf(node));
      const tray = this.#racks.switchAt(controllerOf(node));
      if (device === undefined) return [];
      const trayIndex = tray === undefined ? {} : { tray_index: tray.spec.trayIndex };
      return [{ node_id: node.node_id ?? "", slot_number: device.spec.slot, ...trayIndex }];
    });
    const { success, failure } = this.numbering.words.code;
    const isWhole = places.length === nodes.length;
    return { status: isWhole ? success : failure, message: isWhole ? "" : "unknown nodes", node_device_info: places };
  }

  #configure(node: Node, topology: string): Message {
    const { success, failure } = this.numbering.words.code;
    const tray = this.#racks.switchAt(controllerOf(node));
    if (tray === undefined) return { status: failure, message: "the node is no switch" };
    if (!tray.isUp) return { status: failure, message: "the switch's own system does not answer" };
    if (tray.cluster !== "enabled") tray.enableCluster();
    tray.startController();
    return { status: success, topology_used: topology, fabric_state_enabled: true, grpc_enabled: true };
  }

  #fabric(nodes: readonly Node[]): Message {
    const services = nodes.map((node) => {
      const tray = this.#racks.switchAt(controllerOf(node));
      const id = node.node_id ?? "";
      if (tray === undefined || !tray.isUp) return [id, { error_message: "the switch's own system does not answer" }];
      const { status, reason, additionInfo } = tray.fabric;
      return [id, { status_json: JSON.stringify({ status, reason, "addition-info": additionInfo }) }];
    });
    return { status: this.numbering.words.code.success, services: Object.fromEntries(services) };
  }
}

function describeProgress({ device: { firmware }, task, files }: Job): string {
  const flash = firmware.flashes.find((each) => each.task === task);
  const left = files.length === 0 ? "" : `, ${files.length} more to write`;
  return flash === undefined ? "queued" : `firmware is being written: ${firmware.percentOf(flash)} %${left}`;
}

const IMAGE_STATES = { running: "RUNNING", completed: "COMPLETED", failed: "FAILED" } as const;

function filesFor(request: Message, { type = 0 }: Node): readonly string[] {
  const byType = (request.firmware_targets ?? {}) as Readonly<
    Record<string, { readonly targets?: readonly { readonly filename?: string }[] } | undefined>
  >;
  return (byType[type]?.targets ?? []).map(({ filename }) => (filename ?? "").replace(/^.*\//, ""));
}
