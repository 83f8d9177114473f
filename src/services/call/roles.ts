/**
 * Who a caller can be. Which method needs which role is in `wiring/things/` and `wiring/shared-services.ts`.
 *
 * The first three are Millwright's own. The others are the principals of `forge.Forge` clients, under the names that its
 * clients' operators know them by.
 */
export const ROLES = [
  "admin",
  "operator",
  "viewer",
  "ForgeAdminCLI",
  "Machineatron",
  "SiteAgent",
  "Health",
  "Flow",
  "DsxExchangeConsumer",
] as const;
export type Role = (typeof ROLES)[number];

export const isRole = (word: string): word is Role => ROLES.some((role) => role === word);

/** What a role brings along. */
const CARRIES: Readonly<Record<Role, readonly Role[]>> = {
  admin: ["ForgeAdminCLI"],
  ForgeAdminCLI: ["operator"],
  operator: ["viewer"],
  viewer: [],
  Machineatron: [],
  SiteAgent: [],
  Health: [],
  Flow: [],
  DsxExchangeConsumer: [],
};

/** The roles and all they carry, each once. Words that are no roles are dropped: they allow nothing. */
export function expandRoles(roles: readonly string[]): ReadonlySet<Role> {
  const all = new Set<Role>();
  const pending = roles.filter(isRole);
  for (let role = pending.pop(); role !== undefined; role = pending.pop()) {
    if (all.has(role)) continue;
    all.add(role);
    pending.push(...CARRIES[role]);
  }
  return all;
}
