import type { ServiceImpl } from "@connectrpc/connect";
import type { RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { deleteProfile, pageRackProfiles, putProfile } from "../../../services/catalog/rack-profiles.ts";
import { refreshDevice } from "../../../services/device/refresh.ts";
import { forceDeleteRack } from "../../../services/rack/deletion.ts";
import { viewRackDevices } from "../../../services/rack/devices.ts";
import { getRack, pageRacks, viewRacks } from "../../../services/rack/racks.ts";
import { nonEmpty, required } from "../../convert/fields.ts";
import { listRequestFrom, pageOf } from "../../convert/listing.ts";
import { rackStateOfAlias } from "../../forge/rack-state.ts";
import { callerKey } from "../../transport/interceptors.ts";
import { profileFrom, profileOf, rackOf } from "./rack-messages.ts";

export const racks = (deps: ServiceDeps) =>
  ({
    async listRacks(request, { values }) {
      const page = await pageRacks(deps, {
        ...listRequestFrom(request, values.get(callerKey)),
        state: nonEmpty(rackStateOfAlias(request.state) ?? request.state),
        stuckOnly: request.stuckOnly,
        failingOnly: request.failingOnly,
      });
      return { racks: page.items.map((view) => rackOf(view)), ...pageOf(page) };
    },
    async getRack({ id }) {
      const [view] = await viewRacks(deps, [await getRack(deps, id)]);
      return { rack: required(view && rackOf(view, await viewRackDevices(deps, view.rack)), "id") };
    },
    async refreshRack({ id }) {
      await refreshDevice(deps, { kind: "rack", id, field: "id" });
      return {};
    },
    async forceDeleteRack({ id }, { values }) {
      await forceDeleteRack(deps, values.get(callerKey), id);
      return {};
    },
    async listRackProfiles() {
      return { profiles: (await pageRackProfiles(deps)).map(profileOf) };
    },
    async putRackProfile({ profile }, { values }) {
      await putProfile(deps, values.get(callerKey), profileFrom(required(profile, "profile")));
      return {};
    },
    async deleteRackProfile({ name }, { values }) {
      await deleteProfile(deps, values.get(callerKey), name);
      return {};
    },
  }) satisfies Partial<ServiceImpl<typeof RackService>>;
