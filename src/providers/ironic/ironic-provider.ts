import type { Capabilities, Provider } from "../../capabilities/provider.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { createIronicBoot } from "./boot.ts";
import { createIronicClient, type IronicClientOptions } from "./client.ts";
import { createComputerSystem } from "./computer-system.ts";
import { createIronicImaging } from "./imaging.ts";
import { createIronicLocator } from "./locator.ts";
import { createNodes } from "./node.ts";
import { createIronicPower, type IronicPowerOptions } from "./power.ts";

export interface IronicProviderOptions extends IronicClientOptions, Partial<Omit<IronicPowerOptions, "clock">> {
  readonly clock?: Clock;
}

type IronicCapabilities = Pick<Capabilities, "power" | "reset" | "boot" | "imaging" | "system" | "locator" | "vitals">;

export interface IronicProvider extends Provider {
  readonly can: IronicCapabilities;
  /** Drops the connections. Before the gateway is closed. */
  close(): void;
}

/** Machines that OpenStack Ironic has in its care. What it does not offer (sensors and event logs) is missing. */
export function createIronicProvider(options: IronicProviderOptions): IronicProvider {
  const client = createIronicClient(options);
  const nodes = createNodes(client);
  const power = createIronicPower(nodes, { ...options, clock: options.clock ?? systemClock });
  const inspect = createComputerSystem(nodes, power);
  return {
    name: "ironic",
    can: {
      power,
      reset: power,
      boot: createIronicBoot(nodes),
      imaging: createIronicImaging(nodes),
      system: inspect,
      vitals: inspect,
      locator: createIronicLocator(nodes),
    },
    close: () => client.close(),
  };
}
