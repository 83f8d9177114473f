import { refusedCallListing } from "../../store/access/refused-call-list.ts";
import { sessionListing } from "../../store/access/session-list.ts";
import { tokenListing } from "../../store/access/token-list.ts";
import { cloudInitTable } from "../../store/catalog/cloud-init.ts";
import { clusterTable } from "../../store/catalog/clusters.ts";
import { imageTable } from "../../store/catalog/images.ts";
import { fleetSites } from "../../store/fleet/sites.ts";
import { parkedListing } from "../../store/restore/parked-list.ts";
import { planListing } from "../../store/run/plan-list.ts";
import type { AnyListing } from "../things/thing.ts";

/** Lists of what has no lifecycle, and is no thing therefore. The reference of filters is printed from them, as from those of things. */
export const CATALOG_LISTINGS: readonly AnyListing[] = [
  clusterTable.listing,
  imageTable.listing,
  cloudInitTable.listing,
  planListing,
  fleetSites.listing,
  tokenListing,
  sessionListing,
  refusedCallListing,
  parkedListing,
];
