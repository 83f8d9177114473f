import type { MachineSpec } from "./machine.ts";

/** Its BMC is that of MAAS alone: what is done with the machine goes through its fleet node. */
export const isInMaas = ({ provider }: Pick<MachineSpec, "provider">): boolean => provider === "maas";

/** For people: why a device is left out, or refused. */
export const ONLY_MAAS = "only MAAS touches its BMC";
