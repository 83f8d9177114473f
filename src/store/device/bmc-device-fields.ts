import { POWER_STATES } from "../../capabilities/power-control.ts";
import { CAUSE_WORDS } from "../../kernel/causes.ts";
import { isStuck } from "../../kernel/decide.ts";
import type { Lifecycle, StateSpec } from "../../kernel/lifecycle.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import { defineFields } from "../postgres/list-fields.ts";
import type { BmcDeviceRecord } from "./bmc-devices.ts";
import { FAILING_TOLERATED, FAILS_TOO_LONG, NEEDS_PERSON } from "./device-attention.ts";
import { macSpelling } from "./mac-spelling.ts";

export const FLAG = ["true", "false"] as const;
export const flagSql = (condition: string): string => `(case when ${condition} then 'true' else 'false' end)`;

type Failing = Pick<BmcDeviceRecord, "outcome" | "lastError">;

/** The last pass failed. A pass can fail before the device could say so; then the work alone knows. */
export const isFailing = ({ outcome, lastError }: Failing): boolean =>
  outcome === null ? lastError !== null : outcome.type !== "waiting";
export const FAILING_SQL = `(t.outcome ->> 'type' in ('failing', 'needs_intervention') or (t.outcome is null and w.last_error is not null))`;

/** Since when passes fail; null while they do not, and where it is not known. */
export function failingSinceOf(device: Failing): Date | null {
  const since = isFailing(device) ? device.outcome?.since : undefined;
  return since === undefined ? null : new Date(since);
}

/** A lifecycle as far as lists need it. */
export type Table = Pick<Lifecycle<never>, "kind"> & { readonly states: Readonly<Record<string, StateSpec>> };

/** The device needs attention: in error, waiting for a person, above its SLA, or failing for longer than is tolerated. */
export function isStuckDevice(
  lifecycle: Table,
  device: Failing & Pick<BmcDeviceRecord, "state" | "stateSince">,
  now: Date,
): boolean {
  const since = failingSinceOf(device);
  const failsTooLong = since !== null && now.getTime() - since.getTime() > FAILING_TOLERATED;
  const needsPerson = device.outcome?.type === "needs_intervention";
  return isStuck(lifecycle, device, now) || device.state.name === "error" || needsPerson || failsTooLong;
}

/** The same in SQL, from the lifecycle's own SLAs. They count where `slaCounts` holds. */
export function stuckSql({ states }: Table, slaCounts = "true"): string {
  const late = Object.entries(states).flatMap(([name, { sla }]) =>
    sla === undefined
      ? []
      : [`(t.state = '${name}' and t.state_since < now() - interval '${sla} ms' and ${slaCounts})`],
  );
  return `(${[...late, "t.state = 'error'", NEEDS_PERSON, FAILS_TOO_LONG].join(" or ")})`;
}

const causeOfDevice = ({ outcome, state }: Pick<BmcDeviceRecord, "outcome" | "state">): string =>
  (outcome?.cause ?? parseCause(state.failure))?.code ?? "";
const CAUSE_SQL = `coalesce(t.outcome -> 'cause' ->> 'code', t.state_data -> 'failure' ->> 'code', '')`;

/** What lists of devices of every kind are filtered and sorted by. */
// biome-ignore format: a table is read by its columns
export const bmcDeviceFields = (lifecycle: Table, { noun, nouns }: { readonly noun: string; readonly nouns: string }) => defineFields<BmcDeviceRecord>()({
  id:             { type: "text", sql: "t.id", sort: "set", doc: `The ${noun}'s id.`, of: ({ id }) => id },
  name:           { type: "text", sql: "t.name", sort: "set", doc: "What people call it.", of: ({ name }) => name },
  description:    { type: "text", sql: "t.description", doc: "What people say about it.", of: ({ description }) => description },
  rack_id:        { type: "text", sql: "t.rack_id", sort: "nullable", doc: "The rack that it stands in.", of: ({ rackId }) => rackId },
  rack:           { type: "text", sql: "t.rack_id", sort: "nullable", doc: "The same as `rack_id`: its name in the list of machines.", of: ({ rackId }) => rackId },
  state:          { type: Object.keys(lifecycle.states), sql: "t.state", sort: "set", doc: `Its state in the lifecycle ${lifecycle.kind}.`, of: ({ state }) => state.name },
  state_since:    { type: "time", sql: "t.state_since", sort: "set", doc: "Since when it is in its state.", of: ({ stateSince }) => stateSince },
  power_state:    { type: POWER_STATES, sql: "coalesce(t.facts ->> 'powerState', 'unknown')", sort: "set", doc: "As its BMC said last.", of: ({ facts }) => facts.powerState ?? "unknown" },
  health_status:  { type: ["ok", "warning", "critical", "unknown"], sql: "coalesce(t.facts ->> 'health', 'unknown')", doc: "As its BMC says; health reports of others are not in it.", of: ({ facts }) => facts.health ?? "unknown" },
  stuck:          { type: FLAG, sql: flagSql(stuckSql(lifecycle)), doc: "It needs attention.", of: (device, _, now) => String(isStuckDevice(lifecycle, device, now)) },
  failing:        { type: FLAG, sql: flagSql(FAILING_SQL), doc: "The last pass failed.", of: (device) => String(isFailing(device)) },
  cause:          { type: CAUSE_WORDS, sql: CAUSE_SQL, doc: "Why its last pass failed or what it waits for, or why it is in error: a cause; empty where nothing is wrong.", of: causeOfDevice },
  deleted:        { type: FLAG, sql: flagSql("t.deleted_at is not null"), doc: `It is marked for deletion. Such ${nouns} are left out unless the filter says \`deleted\` or \`deleted_at\`, or the request says so.`, of: ({ deletedAt }) => String(deletedAt !== null) },
  deleted_at:     { type: "time", sql: "t.deleted_at", sort: "nullable", doc: "When it was marked for deletion.", of: ({ deletedAt }) => deletedAt },
  bmc_mac:        { type: macSpelling, sql: "t.bmc_mac", sort: "set", doc: "MAC address of its BMC, in any notation.", of: ({ bmc }) => bmc.mac },
  bmc_address:    { type: "text", sql: "t.bmc_address", sort: "set", doc: "Where its BMC is, without the port.", of: ({ bmc }) => bmc.address },
  serial:         { type: "text", sql: "(t.facts ->> 'serial')", sort: "nullable", doc: "As its BMC says.", of: ({ facts }) => facts.serial },
  vendor:         { type: "text", sql: "(t.facts ->> 'vendor')", sort: "nullable", doc: "As its BMC says.", of: ({ facts }) => facts.vendor },
  model:          { type: "text", sql: "(t.facts ->> 'model')", sort: "nullable", doc: "As its BMC says.", of: ({ facts }) => facts.model },
  created_at:     { type: "time", sql: "t.created_at", sort: "set", doc: "When it was put on record.", of: ({ createdAt }) => createdAt },
  labels:         { type: "labels", sql: "t.labels", sort: "nullable", doc: "A label, by its key; one without a value is as one that is not there.", of: ({ labels }, key) => (Object.hasOwn(labels, key) ? (labels[key] ?? null) : null) },
});
