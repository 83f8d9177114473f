import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { type Fabric, type FabricStatus, type FabricTarget, isFabricRunning } from "../../capabilities/rack/fabric.ts";
import { type Resource, textAt } from "../transport/device-json.ts";
import { createNvueClient, type NvueClient, type NvueOptions } from "./nvue-client.ts";

const APP = "nmx-controller";
const CONTROLLER = `/cluster/apps/${APP}`;
const RUNNING = "/cluster/apps/running";

export interface NvueFabric extends Fabric {
  close(): void;
}

/**
 * The fabric through NVUE, the REST API of the switches' own operating system: the cluster is enabled, and its controller started,
 * on the primary.
 */
export function createNvueFabric(options: NvueOptions): NvueFabric {
  const client = createNvueClient(options);
  return {
    /** The controller finds out the topology by itself. */
    async configure(primary, _topology, call) {
      // Applying takes a while, and nothing can be started before: that is for the next call.
      if (textAt((await client.get(primary, "/cluster", call)).resource, "state") !== "enabled") {
        return { job: await enableCluster(client, primary, call), isStarted: false };
      }
      if (await isControllerUp(client, primary, call)) return { job: null, isStarted: true };
      const start = { "@start": { state: "start", parameters: {} } };
      const { resource } = await client.post(primary, CONTROLLER, start, call);
      return { job: textAt(resource, "id") ?? null, isStarted: true };
    },

    async readStatus(member, call) {
      const { resource, certificateFingerprint } = await client.get(member, CONTROLLER, call);
      return { ...statusOf(resource), ...(certificateFingerprint !== undefined && { certificateFingerprint }) };
    },

    close: () => client.close(),
  };
}

/**
 * Whether the controller was started. While it comes up it reports what it reports before it is started; only the list of running
 * applications tells the two apart. A system without that list is started again, which changes nothing where the controller runs.
 */
async function isControllerUp(client: NvueClient, primary: FabricTarget, call: CallContext): Promise<boolean> {
  if (isFabricRunning(statusOf((await client.get(primary, CONTROLLER, call)).resource))) return true;
  try {
    return Object.hasOwn((await client.get(primary, RUNNING, call)).resource, APP);
  } catch (error) {
    if (error instanceof DeviceFailure && error.status === 404) return false;
    throw error;
  }
}

/** NVUE changes its configuration in revisions: one is opened, changed and applied. */
async function enableCluster(client: NvueClient, primary: FabricTarget, call: CallContext): Promise<string> {
  const [revision] = Object.keys((await client.post(primary, "/revision", {}, call)).resource);
  if (revision === undefined) {
    throw new DeviceFailure("protocol", "switch_os", `${primary.address} opened a revision without a name`);
  }
  const rev = encodeURIComponent(revision);
  await client.patch(primary, `/cluster?rev=${rev}`, { state: "enabled" }, call);
  await client.patch(primary, `/revision/${rev}`, { state: "apply", "auto-prompt": { ays: "ays_yes" } }, call);
  return revision;
}

const STATES: Readonly<Record<string, FabricStatus["state"]>> = { ok: "ok", "not ok": "not_ok", not_ok: "not_ok" };

/** Exported for its test. */
export function statusOf(app: Resource): FabricStatus {
  const word = textAt(app, "status")?.toLowerCase() ?? "";
  return {
    state: Object.hasOwn(STATES, word) ? (STATES[word] ?? "unknown") : "unknown",
    additionInfo: textAt(app, "addition-info") ?? null,
    reason: textAt(app, "reason") ?? null,
    error: textAt(app, "error") ?? null,
  };
}
