import { POWER_STATES } from "../../capabilities/power-control.ts";
import { CONDITION_TYPES, type ConditionType, holds } from "../../lifecycles/machine/conditions.ts";
import { effectiveState, effectiveStateSql } from "../../lifecycles/machine/effective-state.ts";
import { FAILING_WORDS, isFailing } from "../../lifecycles/machine/failing.ts";
import { MACHINE_PHASES, type MachinePhase } from "../../lifecycles/machine/machine.ts";
import { SERVES_CLUSTER_SQL, SERVING_WORDS, servesCluster } from "../../lifecycles/machine/serving.ts";
import { macSpelling } from "../device/mac-spelling.ts";
import { defineFields, type ListField } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { type MachineRecord, parseRecord, RECORD_COLUMNS, RECORD_FROM, type RecordRow } from "./machines.ts";

const phaseOf = ({ state }: MachineRecord) => state.name as MachinePhase;

/** Empty where nobody has looked. */
const conditionField = (type: ConditionType): ListField<MachineRecord> => ({
  type: ["true", "false", ""],
  sql: `(case when t.conditions @> '[{"type": "${type}", "status": true}]' then 'true'
              when t.conditions @> '[{"type": "${type}", "status": false}]' then 'false' else '' end)`,
  doc: `Whether the condition ${type} holds; empty where nobody has looked.`,
  of: ({ conditions }) =>
    conditions.some((condition) => condition.type === type) ? String(holds(conditions, type)) : "",
});

const conditionFields = Object.fromEntries(
  CONDITION_TYPES.map((type) => [`conditions.${type}`, conditionField(type)]),
) as Readonly<Record<`conditions.${ConditionType}`, ListField<MachineRecord>>>;

const CAUSES_SQL = `array(select jsonb_array_elements_text(jsonb_path_query_array(t.conditions, 'lax $[*].cause.code')))`;

/** In the words of the contract. */
// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<MachineRecord>()({
  machine_id:         { type: "text", sql: "t.id", sort: "set", doc: "The machine's id.", of: ({ id }) => id },
  phase:              { type: MACHINE_PHASES, sql: "t.state", sort: "set", doc: "What may be done with it.", of: phaseOf },
  effective_state:    { type: MACHINE_PHASES,
                        sql: `(${effectiveStateSql({ phase: "t.state", runIsActive: "t.active_run_id is not null", inCustomerCluster: "t.in_customer_cluster" })})`,
                        sort: "set", doc: "What it is now, from all that is known.",
                        of: (machine) => effectiveState({ phase: phaseOf(machine), runIsActive: machine.activeRunId !== null, inCustomerCluster: holds(machine.conditions, "InCustomerCluster") }) },
  failing:            { type: FAILING_WORDS, sql: "t.failing", doc: "It needs a person, is degraded, or is not reached although it should be.",
                        of: (machine) => String(isFailing({ phase: phaseOf(machine), conditions: machine.conditions })) },
  serves_cluster:     { type: SERVING_WORDS, sql: SERVES_CLUSTER_SQL, doc: "Its node is in a cluster and not drained: what runs there is cut off with the machine.",
                        of: (machine) => String(servesCluster({ phase: phaseOf(machine), conditions: machine.conditions })) },
  cause:              { type: "tags", sql: CAUSES_SQL, doc: "One of [the causes](causes.md) that its conditions name.",
                        of: ({ conditions }) => conditions.flatMap(({ cause }) => cause?.code ?? []) },
  provider:           { type: "text", sql: "t.provider", sort: "set", doc: "The way to reach it.", of: ({ spec }) => spec.provider },
  rack:               { type: "text", sql: "t.rack", sort: "nullable", doc: "The rack that it stands in.", of: ({ spec }) => spec.rack },
  rack_id:            { type: "text", sql: "t.rack", sort: "nullable", doc: "The same as `rack`: its name in the lists of devices.", of: ({ spec }) => spec.rack },
  slot:               { type: "text", sql: "t.slot", sort: "nullable", doc: "Where in the rack.", of: ({ spec }) => spec.slot },
  location:           { type: "text", sql: "t.location", sort: "nullable", doc: "The site, hall or room.", of: ({ spec }) => spec.location },
  serial:             { type: "text", sql: "t.serial", sort: "nullable", doc: "The serial number that its owner gave.", of: ({ spec }) => spec.serial },
  mac:                { type: { ...macSpelling, tags: true }, sql: "t.macs", doc: "One of its MAC addresses, in any notation.", of: ({ spec }) => spec.macs },
  customer_id:        { type: "text", sql: "t.customer_id", sort: "nullable", doc: "Whose it is.", of: ({ spec }) => spec.customerId },
  target_cluster_ref: { type: "text", sql: "t.target_cluster", sort: "nullable", doc: "The cluster that it joins.", of: ({ spec }) => spec.targetCluster },
  bmc_endpoint:       { type: "text", sql: "t.bmc_endpoint", doc: "Where its BMC is, as it was given.", of: ({ given }) => given.bmc },
  ssh_endpoint:       { type: "text", sql: "t.ssh_endpoint", doc: "Where SSH answers, as it was given.", of: ({ given }) => given.ssh },
  power_state:        { type: POWER_STATES, sql: "coalesce(t.facts ->> 'powerState', 'unknown')", doc: "As its BMC said last.", of: ({ facts }) => facts.powerState ?? "unknown" },
  vendor:             { type: "text", sql: "(t.facts ->> 'vendor')", doc: "As its BMC says.", of: ({ facts }) => facts.vendor },
  model:              { type: "text", sql: "(t.facts ->> 'model')", doc: "As its BMC says.", of: ({ facts }) => facts.model },
  active_run_id:      { type: "text", sql: "t.active_run_id", doc: "The run that is PENDING or RUNNING.", of: ({ activeRunId }) => activeRunId },
  last_run_id:        { type: "text", sql: "t.last_run_id", doc: "The last run that ended.", of: ({ lastRunId }) => lastRunId },
  created_at:         { type: "time", sql: "t.created_at", sort: "set", doc: "When it was registered.", of: ({ createdAt }) => createdAt },
  phase_since:        { type: "time", sql: "t.state_since", sort: "set", doc: "Since when it is in its phase.", of: ({ stateSince }) => stateSince },
  labels:             { type: "labels", sql: "t.labels", sort: "nullable", doc: "A label, by its key.", of: ({ labels }, key) => (Object.hasOwn(labels, key) ? (labels[key] ?? null) : null) },
  ...conditionFields,
});

export type MachineField = keyof typeof FIELDS & string;

export const machineListing = createListing<MachineField, MachineRecord, RecordRow>({
  name: "machines",
  kind: "machine",
  fields: FIELDS,
  id: "machine_id",
  columns: RECORD_COLUMNS,
  from: RECORD_FROM,
  countFrom: "machines t",
  parse: parseRecord,
});
