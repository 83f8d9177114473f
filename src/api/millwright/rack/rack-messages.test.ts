import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { RackSchema } from "../../../../contract/millwright/v1/rack_pb.js";
import type { RackView } from "../../../services/rack/racks.ts";
import { rackOf } from "./rack-messages.ts";

const FLASHED = { id: "fw-v2.1", wanted: { compute: { bmc: "2.1" } } };

/** A ready rack of which only the firmware matters. */
function viewOf(flashed: typeof FLASHED | null, defaultId: string | null): RackView {
  const at = new Date(0);
  const nothing = { trays: [], switches: [], shelves: [], labels: {}, profile: null, profileId: null, outcome: null };
  const requests = { maintenanceRequest: null, reprovisionRequest: null };
  const last = { lastMaintenanceRequest: null, lastReprovisionRequest: null };
  const rack = {
    ...{ ...nothing, ...requests, ...last, id: "rack-1", name: "rack-1", description: "" },
    ...{ state: { name: "ready" }, stateSince: at, createdAt: at, deletedAt: null, nextCheckAt: at },
    ...{ metadataVersion: 1, metadataChangedAt: at },
    facts: { workSet: { leftOut: [], firmware: flashed } },
    defaultFirmware: defaultId === null ? null : { id: defaultId },
  };
  const standing = { reason: "", stuck: false, failingSince: null, sla: null, urgency: 0 };
  return { rack, counts: [], ...standing } as unknown as RackView;
}

test.each([
  ["that was flashed last by its id", FLASHED, "fw-v2.2", "fw-v2.1"],
  ["that is the default where none was flashed", null, "fw-v2.2", "fw-v2.2"],
  ["or nothing where there is none", null, null, ""],
])("a rack names the firmware %s", (_, flashed, defaultId, expected) => {
  expect(create(RackSchema, rackOf(viewOf(flashed, defaultId))).firmware).toBe(expected);
});
