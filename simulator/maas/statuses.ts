/** The statuses of a machine in MAAS, with the names that MAAS shows and the statuses that may follow. */
export const STATUSES = {
  0: { name: "New", next: [1, 21, 3, 4, 7, 8, 17] },
  1: { name: "Commissioning", next: [2, 4, 7, 3, 0, 8, 21] },
  2: { name: "Failed commissioning", next: [1, 3, 7, 8, 17, 21] },
  3: { name: "Missing", next: [0, 4, 10, 1, 8, 17, 21] },
  4: { name: "Ready", next: [17, 1, 10, 5, 7, 3, 8, 21] },
  5: { name: "Reserved", next: [4, 10, 7, 3, 8, 14, 12, 17, 21] },
  6: { name: "Deployed", next: [10, 3, 8, 4, 14, 12, 17, 21] },
  7: { name: "Retired", next: [0, 4, 3, 8, 17, 21] },
  8: { name: "Broken", next: [1, 4, 14, 12, 17, 21, 6] },
  9: { name: "Deploying", next: [10, 3, 8, 11, 6, 4, 14, 12] },
  10: { name: "Allocated", next: [4, 7, 3, 8, 9, 14, 12, 17, 21] },
  11: { name: "Failed deployment", next: [10, 3, 8, 4, 14, 12, 17, 21] },
  12: { name: "Releasing", next: [0, 10, 5, 6, 4, 8, 3, 11, 15, 13] },
  13: { name: "Releasing failed", next: [12, 14, 4, 8, 21] },
  14: { name: "Disk erasing", next: [8, 14, 15, 4, 12] },
  15: { name: "Failed disk erasing", next: [14, 12, 8, 10, 4, 17, 21] },
  16: { name: "Rescue mode", next: [8, 19, 21] },
  17: { name: "Entering rescue mode", next: [4, 8, 6, 16, 18, 19] },
  18: { name: "Failed to enter rescue mode", next: [8, 17, 19, 21] },
  19: { name: "Exiting rescue mode", next: [0, 8, 2, 4, 5, 10, 11, 6, 3, 7, 13, 15, 16, 18, 20, 22] },
  20: { name: "Failed to exit rescue mode", next: [8, 19, 21] },
  21: { name: "Testing", next: [8, 0, 4, 5, 10, 6, 1, 11, 3, 7, 13, 15, 18, 20, 22] },
  22: { name: "Failed testing", next: [1, 8, 3, 17, 21, 4, 6] },
} as const satisfies Readonly<Record<number, { readonly name: string; readonly next: readonly number[] }>>;

export type MaasStatus = keyof typeof STATUSES;

export const NEW = 0;
export const COMMISSIONING = 1;
export const FAILED_COMMISSIONING = 2;
export const READY = 4;
export const RESERVED = 5;
export const DEPLOYED = 6;
export const BROKEN = 8;
export const DEPLOYING = 9;
export const ALLOCATED = 10;
export const FAILED_DEPLOYMENT = 11;
export const RELEASING = 12;
export const FAILED_RELEASING = 13;
export const DISK_ERASING = 14;
export const FAILED_DISK_ERASING = 15;
export const TESTING = 21;
export const FAILED_TESTING = 22;

export const nameOf = (status: MaasStatus): string => STATUSES[status].name;

export const mayFollow = (from: MaasStatus, to: MaasStatus): boolean =>
  from === to || (STATUSES[from].next as readonly number[]).includes(to);
