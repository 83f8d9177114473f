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
    async configure(primary, order, call) {
      // Applying takes a while, and nothing can be started before: that is for the next call.
      if (textAt((await client.get(primary, "/cluster", call)).resource, "state") !== "enabled") {
        const at = { client, primary, call };
        const begun = order.job ?? (await findBegun(at, order.jobsBefore));
        return { job: begun === null ? await enableCluster(at) : await goOn(at, begun), isStarted: false };
      }
      if (await isControllerUp(client, primary, call)) return { job: null, isStarted: true };
      const start = { "@start": { state: "start", parameters: {} } };
      const { resource } = await client.post(primary, CONTROLLER, start, call);
      return { job: textAt(resource, "id") ?? null, isStarted: true };
    },

    listJobs: (primary, call) => listRevisions({ client, primary, call }),

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

interface At {
  readonly client: NvueClient;
  readonly primary: FabricTarget;
  readonly call: CallContext;
}

const REVISIONS = "/revision";
const pathOf = (revision: string): string => `${REVISIONS}/${encodeURIComponent(revision)}`;

/** NVUE changes its configuration in revisions: one is opened, changed and applied. One that cannot be changed is removed again. */
async function enableCluster(at: At): Promise<string> {
  const { client, primary, call } = at;
  const [revision] = Object.keys((await client.post(primary, REVISIONS, {}, call)).resource);
  if (revision === undefined) {
    throw new DeviceFailure("protocol", "switch_os", `${primary.address} opened a revision without a name`);
  }
  try {
    await applyEnabled(at, revision);
  } catch (error) {
    // A refusal changes nothing; of a lost answer the next call finds out.
    if (error instanceof DeviceFailure && error.status !== undefined)
      await client.delete(primary, pathOf(revision), call).catch(() => undefined);
    throw error;
  }
  return revision;
}

async function applyEnabled({ client, primary, call }: At, revision: string): Promise<void> {
  await client.patch(primary, `/cluster?rev=${encodeURIComponent(revision)}`, { state: "enabled" }, call);
  await client.patch(primary, pathOf(revision), { state: "apply", "auto-prompt": { ays: "ays_yes" } }, call);
}

const listRevisions = async ({ client, primary, call }: At): Promise<readonly string[]> =>
  Object.keys((await client.get(primary, REVISIONS, call)).resource);

/**
 * The revision of an earlier call whose answer was lost: one that was not there before the first call and has the cluster enabled. A
 * revision of somebody else under the same account is left alone: to apply it would apply whatever else it changes.
 */
async function findBegun(at: At, before: readonly string[] | null): Promise<string | null> {
  if (before === null) return null;
  const { client, primary, call } = at;
  const added = (await listRevisions(at)).filter((each) => !before.includes(each));
  for (const revision of added.slice(-MOST_ASKED)) {
    const { resource } = await client.get(primary, `/cluster?rev=${encodeURIComponent(revision)}`, call);
    if (textAt(resource, "state") === "enabled") return revision;
  }
  return null;
}
const MOST_ASKED = 8;

/** Applies a revision of ours that is still open, waits for one that is being applied, and opens another one only where it is gone. */
async function goOn(at: At, revision: string): Promise<string> {
  const state = await readRevision(at, revision);
  if (state === undefined) return enableCluster(at);
  if (state === "pending") await applyEnabled(at, revision);
  if (/fail|invalid|err/.test(state))
    throw new DeviceFailure(
      "refused_by_device",
      "switch_os",
      `${at.primary.address} could not apply revision ${revision}, which enables the cluster: ${state}`,
      { disposition: "fail" },
    );
  return revision;
}

async function readRevision({ client, primary, call }: At, revision: string): Promise<string | undefined> {
  try {
    return textAt((await client.get(primary, pathOf(revision), call)).resource, "state") ?? "";
  } catch (error) {
    if (error instanceof DeviceFailure && error.status === 404) return undefined;
    throw error;
  }
}

const STATES: Readonly<Record<string, FabricStatus["state"]>> = { ok: "ok", "not ok": "not_ok", not_ok: "not_ok" };

/** Releases of the switches' operating system name it differently. */
const ADDITION_INFO = ["addition-info", "additional-info", "additional-information", "addition_info"];

/** Exported for its test. */
export function statusOf(app: Resource): FabricStatus {
  const word = textAt(app, "status")?.toLowerCase() ?? "";
  return {
    state: Object.hasOwn(STATES, word) ? (STATES[word] ?? "unknown") : "unknown",
    additionInfo: ADDITION_INFO.map((name) => textAt(app, name)).find((text) => text !== undefined) ?? null,
    reason: textAt(app, "reason") ?? null,
    error: textAt(app, "error") ?? null,
  };
}
