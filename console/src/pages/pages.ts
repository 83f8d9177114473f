import {
  clustersPage,
  groupsPage,
  imagesPage,
  rackProfilesPage,
  sitesPage,
  tokensPage,
  workflowsPage,
} from "./catalogues/page.ts";
import { eventsPage } from "./events/page.ts";
import { firmwarePage } from "./firmware/page.ts";
import { fleetNodePage, fleetNodesPage } from "./fleet-nodes/page.ts";
import { installPage, installsPage } from "./installs/page.ts";
import { lifecyclePage, lifecyclesPage } from "./lifecycles/page.ts";
import { machinePage } from "./machine/page.ts";
import { machinesPage } from "./machines/page.ts";
import { overviewPage } from "./overview/page.ts";
import type { Page } from "./page.ts";
import { newPlanPage, planPage, plansPage } from "./plans/page.ts";
import { powerShelfPage, powerShelvesPage } from "./power-shelves/page.ts";
import { rackPage, racksPage } from "./racks/page.ts";
import { runPage } from "./run/page.ts";
import { runsPage } from "./runs/page.ts";
import { scriptPage, scriptsPage } from "./scripts/page.ts";
import { switchesPage, switchPage } from "./switches/page.ts";

/** All pages, in the order of the navigation. */
export const PAGES: readonly Page[] = [
  overviewPage,
  machinesPage,
  machinePage,
  racksPage,
  rackPage,
  powerShelvesPage,
  powerShelfPage,
  switchesPage,
  switchPage,
  installsPage,
  installPage,
  fleetNodesPage,
  fleetNodePage,
  runsPage,
  runPage,
  eventsPage,
  plansPage,
  planPage,
  newPlanPage,
  workflowsPage,
  lifecyclesPage,
  lifecyclePage,
  firmwarePage,
  rackProfilesPage,
  imagesPage,
  scriptsPage,
  scriptPage,
  groupsPage,
  clustersPage,
  sitesPage,
  tokensPage,
];
