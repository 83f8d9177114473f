import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { Sensors } from "../../capabilities/sensors.ts";
import { GET_CHASSIS_STATUS, healthOf } from "./chassis-status.ts";
import type { IpmiClient, IpmiRequest } from "./client.ts";
import { eventLogOf } from "./event-log.ts";
import { readingsOf, sensorsNotWell } from "./sensor-list.ts";

/** Get SDR Repository Info (33.9): version, and how many records. */
const GET_REPOSITORY_INFO: IpmiRequest = {
  netFn: 0x0a,
  command: 0x20,
  what: "Get SDR Repository Info",
  answers: 3,
};
/** Get SEL Info (31.2): version, and how many entries. */
const GET_LOG_INFO: IpmiRequest = { netFn: 0x0a, command: 0x40, what: "Get SEL Info", answers: 3 };
/** As many as a log is ever asked for. */
const MOST_ENTRIES = 1_000;

export function createMachineSensors(client: IpmiClient): Sensors {
  return {
    async readHealth(target, call) {
      const chassis = healthOf(await client.raw(target, GET_CHASSIS_STATUS, call));
      const list = await readSensorList(client, target, call);
      return { status: sensorsNotWell(list).length > 0 ? "critical" : chassis, readings: readingsOf(list) };
    },

    async readLog(target, call, { limit }) {
      if (limit <= 0) return [];
      const [, low = 0, high = 0] = await client.raw(target, GET_LOG_INFO, call);
      if (low === 0 && high === 0) return [];
      // "list" and not "elist", which would read the whole sensor repository for the names.
      const last = String(Math.min(limit, MOST_ENTRIES));
      const { stdout } = await client.read(target, ["-c", "sel", "list", "last", last], call);
      return eventLogOf(stdout, limit);
    },
  };
}

/** The program fills a repository that it finds empty, and reading must change nothing: so an empty one is not read. */
export async function readSensorList(client: IpmiClient, target: BmcTarget, call: CallContext): Promise<string> {
  const [, low = 0, high = 0] = await client.raw(target, GET_REPOSITORY_INFO, call);
  if (low === 0 && high === 0) return "";
  return (await client.read(target, ["-c", "sdr", "list", "full"], call)).stdout;
}
