import { expect, test } from "vitest";
import { FLEET_CAUSES } from "../../kernel/causes/fleet-causes.ts";
import { CAUSES, type CauseCode } from "../../kernel/causes.ts";
import { FAILURE_CLASSES, failedAs, failureClassOf, type JudgedClass } from "./failure-classes.ts";

const judged = Object.keys(FAILURE_CLASSES).filter((name): name is JudgedClass => Object.hasOwn(CAUSES, name));

test("every cause of fleet nodes is a class of its own, and only two classes sum up others", () => {
  expect(Object.keys(FLEET_CAUSES).filter((code) => !Object.hasOwn(FAILURE_CLASSES, code))).toEqual([]);
  expect(Object.keys(FAILURE_CLASSES).filter((name) => !Object.hasOwn(CAUSES, name))).toEqual([
    "maas_unavailable",
    "other",
  ]);
});

test.each(judged)("%s ends the job in the state that its row says", (name) => {
  const { disposition, code } = failedAs(name, "it failed");
  const manual = FAILURE_CLASSES[name].jobState === "failed_manual_intervention";
  expect({ code, disposition }).toEqual({ code: name, disposition: manual ? "intervene" : "fail" });
});

test("what causes of fleet nodes usually lead to is what their rows say", () => {
  const differing = Object.entries(FLEET_CAUSES).filter(
    ([code, { disposition }]) => failedAs(code as JudgedClass, "").disposition !== disposition,
  );
  expect(differing).toEqual([]);
});

// biome-ignore format: a table is read by its columns
test.each<[CauseCode, string, string]>([
  ["unreachable",             "maas_unavailable",        "retry-stage"],
  ["timed_out",               "maas_unavailable",        "retry-stage"],
  ["busy",                    "maas_unavailable",        "retry-stage"],
  ["certificate_untrusted",   "maas_unavailable",        "retry-stage"],
  ["credentials_rejected",    "credentials_rejected",    "retry-stage"],
  ["forbidden",               "credentials_rejected",    "retry-stage"],
  ["machine_deleted_in_maas", "machine_deleted_in_maas", "restart-clean"],
  ["commissioning_failed",    "commissioning_failed",    "resume"],
  ["drift_not_adoptable",     "drift_not_adoptable",     "rerun"],
  ["refused_by_device",       "other",                   "retry-stage"],
  ["bug",                     "other",                   "retry-stage"],
])("%s is of class %s, and %s comes first", (code, name, action) => {
  expect([failureClassOf({ code }), FAILURE_CLASSES[failureClassOf({ code })].action]).toEqual([name, action]);
});
