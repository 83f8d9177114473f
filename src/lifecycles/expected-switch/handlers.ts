import type { Handlers } from "../../kernel/outcome.ts";
import { createExplorer, type ExploredKind, type ExplorerContext } from "../expected-device/explorer.ts";
import { switchLifecycle } from "../switch/lifecycle.ts";
import type { ExpectedSwitch } from "./expected-switch.ts";
import type { expectedSwitchLifecycle } from "./lifecycle.ts";

/** NvLink type, and the serial of the chassis as the source of the id. */
export const exploredSwitch: ExploredKind<ExpectedSwitch> = {
  lifecycle: switchLifecycle,
  noun: "switch",
  link: "switchId",
  idPrefix: "sw100ns",
  model: "Switch",
  columns: ({ nvosMacs, nvosAddress }) => ({ nvos_macs: nvosMacs, nvos_address: nvosAddress }),
};

export const expectedSwitchHandlers: Handlers<typeof expectedSwitchLifecycle, ExpectedSwitch, ExplorerContext> = {
  exploring: createExplorer(exploredSwitch),
};
