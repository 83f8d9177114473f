import type { Flash } from "../../devices/firmware/firmware-state.ts";
import type { ManagedDevice } from "../../devices/managed-device.ts";
import { type Answer, noContent, ok, refuse } from "../answer.ts";
import { collection, link, type Resource, type ResourceCall } from "../resources.ts";

export const TASK_SERVICE = "/redfish/v1/TaskService";
const TASKS = `${TASK_SERVICE}/Tasks`;
const MONITORS = `${TASK_SERVICE}/TaskMonitors`;
const INVENTORY = "/redfish/v1/UpdateService/FirmwareInventory";

export const taskMonitor = ({ task }: Flash): string => `${MONITORS}/${task}`;

export const taskResources = <D extends ManagedDevice>(): [string, Resource<D>][] => [
  [TASK_SERVICE, { GET: () => ok(taskService()) }],
  [TASKS, { GET: listTasks }],
];

/** Tasks come and go, so they are found by their collection. */
export const taskMembers: readonly [string, Resource][] = [
  [TASKS, { GET: (call) => found(call, (flash) => ok(taskBody(call.device, flash))) }],
  [MONITORS, { GET: (call) => found(call, (flash) => monitored(call.device, flash)) }],
];

const taskService = () => ({
  "@odata.id": TASK_SERVICE,
  "@odata.type": "#TaskService.v1_2_1.TaskService",
  Id: "TaskService",
  Name: "Task Service",
  ServiceEnabled: true,
  Tasks: link(TASKS),
});

/** What its maker did before it was delivered: a controller remembers its last updates, so that a list without any says that it forgets. */
function deliveredWith({ firmware }: ManagedDevice): Flash {
  const [manager] = firmware.components;
  return {
    task: 0,
    way: "push",
    component: manager?.id ?? null,
    from: null,
    to: manager?.version ?? null,
    bytes: 0,
    digest: null,
    targets: [],
    begunAt: firmware.deliveredAt,
    dueAt: firmware.deliveredAt,
    conduct: { is: "honest" },
    silentAfterMs: 0,
    silentBy: null,
    isWrong: false,
    wrote: true,
    endedAt: firmware.deliveredAt,
    outcome: "completed",
    why: null,
  };
}

const isKept = ({ traits }: ManagedDevice, { outcome }: Flash): boolean =>
  outcome === "running" || !traits.includes("task_gone_when_done");

function listTasks({ device, path }: ResourceCall): Answer {
  const listed = device.traits.includes("tasks_unlisted") ? [] : [deliveredWith(device), ...device.firmware.flashes];
  const paths = listed.filter((flash) => isKept(device, flash)).map(({ task }) => `${TASKS}/${task}`);
  return ok(collection(path, "TaskCollection", "Tasks", paths));
}

function found({ device, member, path, strike }: ResourceCall, answer: (flash: Flash) => Answer): Answer {
  const flash = [deliveredWith(device), ...device.firmware.flashes].find(({ task }) => String(task) === member);
  if (flash === undefined || !isKept(device, flash) || strike("task_lost")) return refuse("ResourceMissingAtURI", path);
  return answer(flash);
}

/** As the standard has it: 202 with the task while it runs, and then the answer that the request would have had. */
function monitored(device: ManagedDevice, flash: Flash): Answer {
  if (flash.outcome === "running") {
    const headers = { Location: taskMonitor(flash), "Retry-After": "1" };
    return { status: 202, headers, body: taskBody(device, flash) };
  }
  return flash.outcome === "completed" ? noContent : refuse("GeneralError", flash.why ?? "");
}

export function taskBody(device: ManagedDevice, flash: Flash) {
  const { clockAt } = device.firmware;
  const path = `${TASKS}/${flash.task}`;
  return {
    "@odata.id": path,
    "@odata.type": "#Task.v1_7_0.Task",
    Id: String(flash.task),
    Name: flash.component === null ? "Firmware update" : `Firmware update of ${flash.component}`,
    TaskState: { running: "Running", completed: "Completed", failed: "Exception" }[flash.outcome],
    TaskStatus: flash.outcome === "failed" ? "Critical" : "OK",
    ...(device.traits.includes("task_without_percent") ? {} : { PercentComplete: device.firmware.percentOf(flash) }),
    StartTime: clockAt(flash.begunAt),
    ...(flash.endedAt === null ? {} : { EndTime: clockAt(flash.endedAt) }),
    TaskMonitor: taskMonitor(flash),
    Payload: {
      HttpOperation: "POST",
      TargetUri: "/redfish/v1/UpdateService",
      HttpHeaders: [],
      JsonBody: JSON.stringify({ Targets: flash.targets }),
    },
    Messages: messagesOf(device, flash),
  };
}

function messagesOf(device: ManagedDevice, flash: Flash) {
  const target = `${INVENTORY}/${flash.component ?? ""}`;
  const version = flash.to ?? "";
  const known =
    flash.component === null
      ? []
      : [message("Update.1.1.TargetDetermined", `${target} will be updated with ${version}.`, [target, version])];
  if (flash.outcome === "running") return known;
  if (flash.outcome === "failed")
    return [...known, message("Update.1.1.ApplyFailed", `The update failed: ${flash.why}.`, [version, target], true)];
  const waits = flash.component !== null && device.firmware.staged(flash.component) !== undefined;
  return [
    ...known,
    message("Update.1.1.UpdateSuccessful", `${target} was updated with ${version}.`, [target, version]),
    ...(waits ? [message("Base.1.16.ResetRequired", `${target} uses it after a reset.`, [target, ""])] : []),
  ];
}

const message = (id: string, text: string, args: readonly string[], isBad = false) => ({
  "@odata.type": "#Message.v1_1_2.Message",
  MessageId: id,
  Message: text,
  MessageArgs: args,
  MessageSeverity: isBad ? "Critical" : "OK",
  Resolution: isBad ? "Correct the image and submit it again." : "None.",
});
