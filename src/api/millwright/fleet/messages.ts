import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  FleetCandidateSchema,
  FleetProfileSchema,
  FleetSiteSchema,
} from "../../../../contract/millwright/v1/fleet_pb.js";
import type { Candidate } from "../../../services/fleet/candidates.ts";
import type { FleetProfile } from "../../../services/fleet/profiles.ts";
import type { FleetSite } from "../../../services/fleet/sites.ts";
import { timestampOf } from "../../convert/fields.ts";

export const siteOf = ({
  isEnabled,
  createdAt,
  updatedAt,
  ...site
}: FleetSite): MessageInitShape<typeof FleetSiteSchema> => ({
  ...site,
  enabled: isEnabled,
  createdAt: timestampOf(createdAt),
  updatedAt: timestampOf(updatedAt),
});

export const profileOf = ({
  policy,
  createdAt,
  updatedAt,
  ...profile
}: FleetProfile): MessageInitShape<typeof FleetProfileSchema> => ({
  ...profile,
  policy: { ...policy },
  createdAt: timestampOf(createdAt),
  updatedAt: timestampOf(updatedAt),
});

export const candidateOf = ({
  serial,
  macs,
  ip,
  vendor,
  ...candidate
}: Candidate): MessageInitShape<typeof FleetCandidateSchema> => ({
  ...candidate,
  serial: serial ?? "",
  ip: ip ?? "",
  vendor: vendor ?? "",
  macs: [...macs],
});
