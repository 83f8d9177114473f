import { machinesPage } from "./machines/page.ts";
import { overviewPage } from "./overview/page.ts";
import type { Page } from "./page.ts";

/** All pages, in the order of the navigation. */
export const PAGES: readonly Page[] = [overviewPage, machinesPage];
