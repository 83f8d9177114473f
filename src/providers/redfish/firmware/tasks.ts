import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import type { DeviceTask, DeviceTasks } from "../../../capabilities/rack/tasks.ts";
import type { Fetched } from "../../transport/gated-exchange.ts";
import { parseJson } from "../../transport/http-answer.ts";
import { oneLine } from "../../transport/one-line.ts";
import type { RedfishClient } from "../client.ts";
import { notSuchDevice } from "../members.ts";
import { isLocalPath, isResource, linkAt, listAt, membersOf, numberAt, textAt, valueAt } from "../resource.ts";
import { SERVICE_ROOT } from "../sessions.ts";

export function createDeviceTasks(client: RedfishClient): DeviceTasks {
  return {
    async listTasks(target, call) {
      const { resource: root } = await client.get(target, SERVICE_ROOT, call);
      // What is no service root does not say that there are no tasks.
      if (linkAt(root, "Managers") === undefined && linkAt(root, "UpdateService") === undefined)
        throw notSuchDevice(target, `: ${SERVICE_ROOT} lists neither managers nor updates`);
      const service = linkAt(root, "TaskService") ?? linkAt(root, "Tasks");
      const opened = service === undefined ? undefined : await client.find(target, service, call);
      const link = linkAt(opened, "Tasks");
      const collection = link === undefined ? undefined : await client.find(target, link, call);
      return collection === undefined ? null : membersOf(collection).map(({ path }) => path);
    },

    async readTask(target, id, call) {
      try {
        return taskOf(id, await client.get(target, id, call));
      } catch (error) {
        if (error instanceof DeviceFailure && (error.status === 404 || error.status === 410)) return { ...GONE, id };
        throw error;
      }
    },
  };
}

const GONE: Omit<DeviceTask, "id"> = { state: "gone", percent: null, message: "", targets: [] };

/** The task that an answer speaks of: the one that it shows, else the place where it says that the outcome will be. */
export function taskStartedBy({ resource, headers }: Pick<Fetched, "resource" | "headers">): string | null {
  const shown = linkAt(resource);
  if (shown !== undefined && valueAt(resource, "TaskState") !== undefined) return shown;
  const { location } = headers;
  if (typeof location === "string" && URL.canParse(location, "https://bmc/")) {
    const { pathname } = new URL(location, "https://bmc/");
    if (isLocalPath(pathname)) return pathname;
  }
  return shown?.includes("/Tasks/") ? shown : null;
}

const STATES: Readonly<Record<string, DeviceTask["state"]>> = {
  completed: "completed",
  exception: "failed",
  killed: "failed",
  cancelled: "failed",
};

/** Messages by which a device says that the image is written, and runs only after a restart. */
const AWAITS_RESTART = /AwaitToActivate|ResetRequired/i;

function taskOf(id: string, { status, resource }: Pick<Fetched, "status" | "resource">): DeviceTask {
  const word = textAt(resource, "TaskState")?.toLowerCase();
  const percent = numberAt(resource, "PercentComplete");
  return {
    id,
    state: word === undefined ? monitorState(status) : stateOf(word, resource),
    percent: percent === undefined ? null : Math.min(100, Math.max(0, Math.round(percent))),
    message: messageOf(resource),
    targets: targetsOf(resource),
  };
}

/** The place of an outcome says 202 until there is one. */
const monitorState = (status: number): DeviceTask["state"] => (status === 202 ? "running" : "completed");

function stateOf(word: string, resource: unknown): DeviceTask["state"] {
  const state = Object.hasOwn(STATES, word) ? STATES[word] : undefined;
  if (state === "completed" && textAt(resource, "TaskStatus")?.toLowerCase() === "critical") return "failed";
  if (state !== undefined) return state;
  const waits = listAt(resource, "Messages").some((each) => AWAITS_RESTART.test(textAt(each, "MessageId") ?? ""));
  return waits ? "waits" : "running";
}

const LONGEST_MESSAGE = 300;
const ADDRESS = /\bhttps?:\/\/\S+/gi;

/** Without addresses: the one of an image lets everybody fetch it who knows it. */
export const withoutAddresses = (text: string): string => text.replaceAll(ADDRESS, "(address)");

function messageOf(resource: unknown): string {
  const said = listAt(resource, "Messages").flatMap((each) => textAt(each, "Message") ?? []);
  return oneLine(withoutAddresses(said.at(-1) ?? ""), LONGEST_MESSAGE);
}

/** Some show the request that they were made by. */
function targetsOf(resource: unknown): readonly string[] {
  const body = valueAt(resource, "Payload", "JsonBody");
  const asked = typeof body === "string" ? parseJson(body) : body;
  if (!isResource(asked)) return [];
  return listAt(asked, "Targets").filter((each) => typeof each === "string");
}
