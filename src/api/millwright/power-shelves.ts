import type { ServiceImpl } from "@connectrpc/connect";
import type { PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { cancelMaintenance } from "../../services/power-shelf/cancel.ts";
import { setPowerShelfCredentials } from "../../services/power-shelf/credentials.ts";
import {
  acceptPowerShelfCertificate,
  createPowerShelf,
  refreshPowerShelf,
} from "../../services/power-shelf/power-shelves.ts";
import { pagePowerShelves, viewPowerShelf } from "../../services/power-shelf/view.ts";
import { pageOf } from "../convert/listing.ts";
import { callerKey } from "../transport/interceptors.ts";
import { logEntriesOf } from "./device-messages.ts";
import { createPowerShelfFrom, powerShelfOf, powerShelfQueryFrom } from "./power-shelf-messages.ts";

export const powerShelves = (
  deps: ServiceDeps,
): Omit<ServiceImpl<typeof PowerShelfService>, "listExpectedPowerShelves"> => ({
  async createPowerShelf(request, { values }) {
    const { id } = await createPowerShelf(deps, values.get(callerKey), createPowerShelfFrom(request));
    return { powerShelf: powerShelfOf(await viewPowerShelf(deps, id)) };
  },
  async listPowerShelves(request, { values }) {
    const page = await pagePowerShelves(deps, powerShelfQueryFrom(request, values.get(callerKey)));
    return { powerShelves: page.items.map(powerShelfOf), ...pageOf(page) };
  },
  async getPowerShelf({ id }) {
    const view = await viewPowerShelf(deps, id);
    return { powerShelf: powerShelfOf(view), logEntries: logEntriesOf(view.shelf) };
  },
  async refreshPowerShelf({ id, forgetCertificate }, { values }) {
    await refreshPowerShelf(deps, values.get(callerKey), { id, forgetCertificate });
    return {};
  },
  async acceptPowerShelfCertificate({ id, fingerprint }, { values }) {
    await acceptPowerShelfCertificate(deps, values.get(callerKey), { id, fingerprint });
    return { powerShelf: powerShelfOf(await viewPowerShelf(deps, id)) };
  },
  async cancelPowerShelfRequest({ id, requestId }, { values }) {
    await cancelMaintenance(deps, values.get(callerKey), { id, requestId });
    return { powerShelf: powerShelfOf(await viewPowerShelf(deps, id)) };
  },
  async setPowerShelfCredentials({ id, bmcUsername, bmcPassword }, { values }) {
    await setPowerShelfCredentials(deps, values.get(callerKey), { id, bmcUsername, bmcPassword });
    return {};
  },
});
