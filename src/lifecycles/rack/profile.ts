/** How many devices of one kind a rack has, and what they are like. */
export interface ProfilePart {
  readonly count: number;
  readonly name: string | null;
  readonly vendor: string | null;
  readonly slotIds: readonly number[];
  /** What one of them takes at most; null: nobody has said. */
  readonly watts: number | null;
}

/** What a rack consists of when it is whole. */
export interface RackProfile {
  readonly name: string;
  /** By which firmware is found; null: none is. */
  readonly hardwareType: string | null;
  /** As the fabric is configured; null: it is not. */
  readonly topology: string | null;
  readonly class: "dev" | "prod";
  readonly compute: ProfilePart;
  readonly switches: ProfilePart;
  readonly powerShelves: ProfilePart;
}
