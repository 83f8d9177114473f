import type { BootOverride, BootSource } from "../../capabilities/boot-device.ts";
import type { IpmiRequest } from "./client.ts";

const IPMI_BOOT_MODES = ["uefi", "legacy"] as const;
export type IpmiBootMode = (typeof IPMI_BOOT_MODES)[number];

/** What IPMI can name: it has no word for booting over HTTP. */
const DEVICES = { pxe: 0x1, disk: 0x2, cd: 0x5 } as const satisfies Partial<Record<BootSource, number>>;
export type IpmiBootSource = keyof typeof DEVICES;
export const isIpmiBootSource = (source: BootSource): source is IpmiBootSource => Object.hasOwn(DEVICES, source);

const VALID = 0x80;
const PERSISTENT = 0x40;
const UEFI = 0x20;

/** Get System Boot Options (28.13), parameter 5: version, parameter, and five bytes of flags. */
export const GET_BOOT_FLAGS: IpmiRequest = {
  netFn: 0x00,
  command: 0x09,
  data: [0x05, 0x00, 0x00],
  what: "Get System Boot Options (boot flags)",
  answers: 4,
};

export const setBootFlags = (source: IpmiBootSource | "none", mode: IpmiBootMode): IpmiRequest => ({
  netFn: 0x00,
  command: 0x08,
  data:
    source === "none"
      ? [0x05, 0x00, 0x00, 0x00, 0x00, 0x00]
      : [0x05, VALID | (mode === "uefi" ? UEFI : 0), DEVICES[source] << 2, 0x00, 0x00, 0x00],
  what: `Set System Boot Options (${source})`,
  isCommand: true,
});

/**
 * Parameter 3: by default a BMC forgets the boot flags 60 s after they were set, unless the machine is restarted by then. Ours
 * are for a restart that comes when its step does.
 */
export const KEEP_BOOT_FLAGS: IpmiRequest = {
  netFn: 0x00,
  command: 0x08,
  data: [0x03, 0x08],
  what: "Set System Boot Options (keep the flags)",
  isCommand: true,
};

export interface BootFlags {
  /** Once they are used up the flags are no longer valid, though the device often stays in them. */
  readonly valid: boolean;
  readonly override: BootOverride;
}

export function bootFlagsOf(answer: readonly number[]): BootFlags {
  const [, , first = 0, second = 0] = answer;
  const device = (second >> 2) & 0xf;
  const source = (Object.keys(DEVICES) as IpmiBootSource[]).find((each) => DEVICES[each] === device);
  return {
    valid: (first & VALID) !== 0,
    override: {
      source: device === 0 ? "none" : (source ?? "other"),
      lasts: (first & PERSISTENT) === 0 ? "once" : "always",
    },
  };
}
