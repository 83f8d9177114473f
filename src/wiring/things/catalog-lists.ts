import { tokenListing } from "../../store/access/token-list.ts";
import type { AnyListing } from "./thing.ts";

/** Lists of what has no lifecycle, and is no thing therefore. The reference of filters is printed from them, as from those of things. */
export const CATALOG_LISTINGS: readonly AnyListing[] = [tokenListing];
