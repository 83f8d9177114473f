import type { Thing } from "../../kernel/lifecycle.ts";

/** A rack that the site says it has. Its id is the rack's own. */
export interface ExpectedRack extends Thing {
  readonly name: string;
  readonly description: string;
  readonly labels: Readonly<Record<string, string | null>>;
  readonly profileId: string;
  readonly facts: object;
}
