/**
 * Who a caller can be. Which method needs which role is in `wiring/things/` and `wiring/shared-services.ts`.
 *
 * The first five are Millwright's own. `auditor` reads the record of who did what, and `credentials` sets the credentials of devices; neither
 * brings anything else along. The others are the principals of `forge.Forge` clients, under the names that its clients' operators know them by.
 */
export const ROLES = [
  "admin",
  "operator",
  "viewer",
  "auditor",
  "credentials",
  "ForgeAdminCLI",
  "Machineatron",
  "SiteAgent",
  "Health",
  "Flow",
  "DsxExchangeConsumer",
] as const;
/** That of the agent of one fleet node. Nobody is given it but by the enrolment of the node. */
export const AGENT_ROLE = "agent";
export type Role = (typeof ROLES)[number] | typeof AGENT_ROLE;

/** Whether callers can be given it. */
export const isRole = (word: string): word is (typeof ROLES)[number] => ROLES.some((role) => role === word);

/** What a role brings along. */
const CARRIES: Readonly<Record<Role, readonly Role[]>> = {
  admin: ["ForgeAdminCLI", "auditor", "credentials"],
  ForgeAdminCLI: ["operator"],
  operator: ["viewer"],
  viewer: [],
  auditor: [],
  credentials: [],
  Machineatron: [],
  SiteAgent: [],
  Health: [],
  Flow: [],
  DsxExchangeConsumer: [],
  agent: [],
};

/** The roles and all they carry, each once. Words that are no roles are dropped: they allow nothing. */
export function expandRoles(roles: readonly string[]): ReadonlySet<Role> {
  const all = new Set<Role>();
  const pending: Role[] = roles.filter((word) => word === AGENT_ROLE || isRole(word)) as Role[];
  for (let role = pending.pop(); role !== undefined; role = pending.pop()) {
    if (all.has(role)) continue;
    all.add(role);
    pending.push(...CARRIES[role]);
  }
  return all;
}
