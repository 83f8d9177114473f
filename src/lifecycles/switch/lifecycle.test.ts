import { expect, test } from "vitest";
import type { Row } from "../../kernel/lifecycle.ts";
import { switchLifecycle } from "./lifecycle.ts";
import type { Switch } from "./switch.ts";

const rows: readonly Row<Switch>[] = switchLifecycle.transitions;

/** The table of the specification, section 2.3 with the decisions: states as it names them, each row with our trigger. */
// biome-ignore format: a table is read by its columns
const SPECIFICATION = [
  ["created",        "initializing",   "processed"],
  ["initializing",   "configuring",    "interface_associated"],
  ["initializing",   "error",          "identity_wrong"],
  ["configuring",    "validating",     "password_rotated"],
  ["validating",     "bom_validating", "validated"],
  ["bom_validating", "ready",          "bom_validated"],
  ["ready",          "deleting",       "marked_for_deletion"],
  ["ready",          "reprovisioning", "rack_requested"],
  ["reprovisioning", "(stay)",         "firmware_proven"],
  ["reprovisioning", "ready",          "firmware_proven"],
  ["reprovisioning", "ready",          "fabric_configured"],
  ["reprovisioning", "error",          "firmware_failed"],
  ["reprovisioning", "error",          "fabric_failed"],
  ["reprovisioning", "ready",          "rack_ended"],
  ["error",          "deleting",       "marked_for_deletion"],
  ["deleting",       "(gone)",         "removed"],
] as const;

/** Edges that the specification does not draw. */
// biome-ignore format: a table is read by its columns
const ADDED = [
  ["created",        "deleting",       "marked_for_deletion"],
  ["initializing",   "deleting",       "marked_for_deletion"],
  ["configuring",    "deleting",       "marked_for_deletion"],
  ["validating",     "deleting",       "marked_for_deletion"],
  ["bom_validating", "deleting",       "marked_for_deletion"],
  ["reprovisioning", "deleting",       "marked_for_deletion"],
  ["error",          "reprovisioning", "rack_requested"],
  ["error",          "initializing",   "expected_updated"],
  ["*",              "(gone)",         "force_delete"],
] as const;

test("the transitions are those of the specification, no more and no fewer", () => {
  const ours = rows.filter((row) => row[3]?.added === undefined).map(([from, { name }, to]) => [from, to, name]);
  expect(ours).toEqual(SPECIFICATION);
});

test("and the edges added to them are these, each with its reason", () => {
  const ours = rows.filter((row) => row[3]?.added !== undefined).map(([from, { name }, to]) => [from, to, name]);
  expect(ours).toEqual(ADDED);
});

test("the SLA is five minutes, but four hours while the rack is maintained; ready and error have none", () => {
  const slas = Object.entries(switchLifecycle.states).map(([name, spec]) => [name, "sla" in spec ? spec.sla : null]);
  const five = 300_000;
  expect(Object.fromEntries(slas)).toEqual({
    created: five,
    initializing: five,
    configuring: five,
    validating: five,
    bom_validating: five,
    ready: null,
    reprovisioning: 4 * 3_600_000,
    error: null,
    deleting: five,
  });
});
