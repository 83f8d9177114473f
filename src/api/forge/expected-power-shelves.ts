import type { ServiceImpl } from "@connectrpc/connect";
import type { Forge } from "../../../contract/forge/forge_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import {
  addExpectedPowerShelf,
  deleteAllExpectedPowerShelves,
  deleteExpectedPowerShelf,
  getExpectedPowerShelf,
  listAllExpectedPowerShelves,
  replaceAllExpectedPowerShelves,
  updateExpectedPowerShelf,
} from "../../services/expected-power-shelf/expected-power-shelves.ts";
import { callerKey } from "../transport/interceptors.ts";
import {
  expectedShelfFrom,
  expectedShelfKeyFrom,
  forgeExpectedShelfOf,
  linkedExpectedShelfOf,
} from "./expected-power-shelf-messages.ts";

export const forgeExpectedPowerShelves = (deps: ServiceDeps) =>
  ({
    async addExpectedPowerShelf(expected, { values }) {
      await addExpectedPowerShelf(deps, values.get(callerKey), expectedShelfFrom(expected));
      return {};
    },
    async updateExpectedPowerShelf(expected, { values }) {
      await updateExpectedPowerShelf(deps, values.get(callerKey), expectedShelfFrom(expected));
      return {};
    },
    async deleteExpectedPowerShelf(request, { values }) {
      await deleteExpectedPowerShelf(deps, values.get(callerKey), expectedShelfKeyFrom(request));
      return {};
    },
    async getExpectedPowerShelf(request) {
      return forgeExpectedShelfOf(await getExpectedPowerShelf(deps, expectedShelfKeyFrom(request)));
    },
    async getAllExpectedPowerShelves() {
      return { expectedPowerShelves: (await listAllExpectedPowerShelves(deps)).map(forgeExpectedShelfOf) };
    },
    async getAllExpectedPowerShelvesLinked() {
      return { expectedPowerShelves: (await listAllExpectedPowerShelves(deps)).map(linkedExpectedShelfOf) };
    },
    async replaceAllExpectedPowerShelves({ expectedPowerShelves }, { values }) {
      const inputs = expectedPowerShelves.map((expected, index) =>
        expectedShelfFrom(expected, `expected_power_shelves[${index}].`),
      );
      await replaceAllExpectedPowerShelves(deps, values.get(callerKey), inputs);
      return {};
    },
    async deleteAllExpectedPowerShelves(_request, { values }) {
      await deleteAllExpectedPowerShelves(deps, values.get(callerKey));
      return {};
    },
  }) satisfies Partial<ServiceImpl<typeof Forge>>;
