import type { Handlers } from "../../kernel/outcome.ts";
import { createExplorer, type ExploredKind, type ExplorerContext } from "../expected-device/explorer.ts";
import { powerShelfLifecycle } from "../power-shelf/lifecycle.ts";
import type { ExpectedPowerShelf } from "./expected-power-shelf.ts";
import type { expectedPowerShelfLifecycle } from "./lifecycle.ts";

/** Rack type, and the serial of the chassis as the source of the id. */
export const exploredPowerShelf: ExploredKind<ExpectedPowerShelf> = {
  lifecycle: powerShelfLifecycle,
  noun: "power shelf",
  link: "powerShelfId",
  idPrefix: "ps100rs",
  model: "PowerShelf",
};

export const expectedPowerShelfHandlers: Handlers<
  typeof expectedPowerShelfLifecycle,
  ExpectedPowerShelf,
  ExplorerContext
> = { exploring: createExplorer(exploredPowerShelf) };
