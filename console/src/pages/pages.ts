import { eventsPage } from "./events/page.ts";
import { machinePage } from "./machine/page.ts";
import { machinesPage } from "./machines/page.ts";
import { overviewPage } from "./overview/page.ts";
import type { Page } from "./page.ts";
import { runPage } from "./run/page.ts";
import { runsPage } from "./runs/page.ts";

/** All pages, in the order of the navigation. */
export const PAGES: readonly Page[] = [overviewPage, machinesPage, machinePage, runsPage, runPage, eventsPage];
