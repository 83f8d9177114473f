import type { ServiceImpl } from "@connectrpc/connect";
import type { PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { pageExpectedPowerShelves } from "../../services/expected-power-shelf/expected-power-shelves.ts";
import { pageOf } from "../convert/listing.ts";
import { callerKey } from "../transport/interceptors.ts";
import { expectedOf, expectedQueryFrom } from "./expected-power-shelf-messages.ts";

export const expectedPowerShelves = (
  deps: ServiceDeps,
): Pick<ServiceImpl<typeof PowerShelfService>, "listExpectedPowerShelves"> => ({
  async listExpectedPowerShelves(request, { values }) {
    const page = await pageExpectedPowerShelves(deps, expectedQueryFrom(request, values.get(callerKey)));
    return { expectedPowerShelves: page.items.map(expectedOf), ...pageOf(page) };
  },
});
