import type { ServiceImpl } from "@connectrpc/connect";
import type { Forge } from "../../../contract/forge/forge_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import {
  addExpectedSwitch,
  deleteAllExpectedSwitches,
  deleteExpectedSwitch,
  getExpectedSwitch,
  listAllExpectedSwitches,
  replaceAllExpectedSwitches,
  updateExpectedSwitch,
} from "../../services/expected-switch/expected-switches.ts";
import { callerOf } from "./device-methods.ts";
import {
  expectedSwitchFrom,
  expectedSwitchKeyFrom,
  forgeExpectedSwitchOf,
  linkedExpectedSwitchOf,
} from "./expected-switch-messages.ts";

export const forgeExpectedSwitches = (deps: ServiceDeps) =>
  ({
    async addExpectedSwitch(expected, context) {
      await addExpectedSwitch(deps, callerOf(context), expectedSwitchFrom(expected));
      return {};
    },
    async updateExpectedSwitch(expected, context) {
      await updateExpectedSwitch(deps, callerOf(context), expectedSwitchFrom(expected));
      return {};
    },
    async deleteExpectedSwitch(request, context) {
      await deleteExpectedSwitch(deps, callerOf(context), expectedSwitchKeyFrom(request));
      return {};
    },
    async getExpectedSwitch(request) {
      return forgeExpectedSwitchOf(await getExpectedSwitch(deps, expectedSwitchKeyFrom(request)));
    },
    async getAllExpectedSwitches() {
      return { expectedSwitches: (await listAllExpectedSwitches(deps)).map(forgeExpectedSwitchOf) };
    },
    async getAllExpectedSwitchesLinked() {
      return { expectedSwitches: (await listAllExpectedSwitches(deps)).map(linkedExpectedSwitchOf) };
    },
    async replaceAllExpectedSwitches({ expectedSwitches }, context) {
      const inputs = expectedSwitches.map((one, index) => expectedSwitchFrom(one, `expected_switches[${index}].`));
      await replaceAllExpectedSwitches(deps, callerOf(context), inputs);
      return {};
    },
    async deleteAllExpectedSwitches(_request, context) {
      await deleteAllExpectedSwitches(deps, callerOf(context));
      return {};
    },
  }) satisfies Partial<ServiceImpl<typeof Forge>>;
