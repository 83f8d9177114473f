import type { Capabilities, Provider } from "../../capabilities/provider.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { createFakeBmc } from "./fake-bmc.ts";
import { createFakeCluster } from "./fake-cluster.ts";
import { createFakeExec } from "./fake-exec.ts";
import type { FakeFailure, FakeSpeed } from "./fake-speed.ts";
import { FakeWorld } from "./fake-world.ts";

export interface FakeProviderOptions {
  readonly speed: FakeSpeed;
  /** What is to go wrong, for demonstrations of failures. */
  readonly failures?: readonly FakeFailure[];
  readonly clock?: Clock;
}

export interface FakeProvider extends Provider {
  readonly can: Omit<
    Capabilities,
    | "clusterAccess"
    | "inventory"
    | "nodes"
    | "netInstall"
    | "playbooks"
    | "firmware"
    | "tasks"
    | "manager"
    | "fabric"
    | "events"
  >;
  /** For tests: the machines themselves. */
  readonly world: FakeWorld;
}

/**
 * Machines that exist in this process alone, for demonstrations and measurements. What steps do to them they keep and show, so
 * that evidence and proofs hold; a restart of the server is a power loss for all of them, and the disk they come back with is bare.
 */
export function createFakeProvider({ speed, failures = [], clock = systemClock }: FakeProviderOptions): FakeProvider {
  const world = new FakeWorld({ clock, speed, failures: new Set(failures) });
  return {
    name: "fake",
    world,
    can: { ...createFakeBmc(world), exec: createFakeExec(world), cluster: createFakeCluster(world) },
  };
}
