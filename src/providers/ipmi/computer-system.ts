import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { ComputerSystem } from "../../capabilities/computer-system.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { Vitals } from "../../capabilities/vitals.ts";
import { ailmentsOf, GET_CHASSIS_STATUS, healthOf, powerOf } from "./chassis-status.ts";
import type { IpmiClient, IpmiRequest } from "./client.ts";
import { fruIdentityOf } from "./field-replaceable-unit.ts";
import type { SensorWatch } from "./sensor-watch.ts";
import { GET_SYSTEM_GUID, systemUuidOf } from "./system-guid.ts";

/** Get Device ID (20.1). */
const GET_DEVICE_ID: IpmiRequest = { netFn: 0x06, command: 0x01, what: "Get Device ID", answers: 5 };

/** What IPMI does not tell (network ports, when the machine was last reset, how far its boot is) stays unsaid. */
export function createComputerSystem(client: IpmiClient, watch: SensorWatch): ComputerSystem & Vitals {
  const readUuid = async (target: BmcTarget, call: CallContext): Promise<string | null> => {
    const guid = await unlessRefused(() => client.raw(target, GET_SYSTEM_GUID, call));
    return guid === undefined ? null : systemUuidOf(guid);
  };
  return {
    async identify(target, call) {
      const systemUuid = await readUuid(target, call);
      // Device 0 alone: reading all of them has the program search the sensor repository, and rewrite one that is empty.
      const fru = await unlessRefused(() => client.read(target, ["fru", "print", "0"], call));
      return {
        ...fruIdentityOf(fru?.stdout ?? ""),
        systemUuid,
        macs: [],
      };
    },

    /**
     * Two requests, and now and then the sensors. The serial would take another, of many messages, and the UUID tells as well which
     * machine it is.
     */
    async readVitals(target, call) {
      const status = await client.raw(target, GET_CHASSIS_STATUS, call);
      const systemUuid = await readUuid(target, call);
      const ailments = [...ailmentsOf(status), ...(await watch.read(target, call))];
      const isCritical = ailments.some(({ health }) => health === "critical");
      return {
        serial: null,
        systemUuid,
        power: powerOf(status),
        health: isCritical ? "critical" : healthOf(status),
        ailments,
      };
    },

    async readBoot(target, call) {
      return { lastReset: null, progress: (await isOff(client, target, call)) ? "off" : "unknown" };
    },

    async readFirmware(target, call) {
      return [{ name: "BMC", version: firmwareOf(await client.raw(target, GET_DEVICE_ID, call)) }];
    },
  };
}

const isOff = async (client: IpmiClient, target: BmcTarget, call: CallContext): Promise<boolean> =>
  powerOf(await client.raw(target, GET_CHASSIS_STATUS, call)) === "off";

/** Major in seven bits, and minor as two decimal digits, one in each half of the byte. */
export function firmwareOf([, , major = 0, minor = 0]: readonly number[]): string {
  return `${major & 0x7f}.${minor.toString(16).padStart(2, "0")}`;
}

/** Not every BMC has a serial or a GUID to show; those that do not answer at all are another matter. */
async function unlessRefused<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof DeviceFailure && (error.family === "declines" || error.family === "odd")) return undefined;
    throw error;
  }
}
