import { expect, test } from "vitest";
import { FLEET_CAUSES } from "../../kernel/causes/fleet-causes.ts";
import { CAUSES, type CauseCode } from "../../kernel/causes.ts";
import {
  FAILURE_CLASSES,
  type FailureClass,
  failedAs,
  failureClassOf,
  type JudgedClass,
  specOf,
} from "./failure-classes.ts";
import { LACKS, type Lack } from "./lacks.ts";

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

const NAMES = { node: "fn-1", site: "lab", machine: "m-1", address: "10.0.0.1", bundle: "late", allocation: "fa-1" };
const commandOf = (lack: Lack): string => LACKS[lack].command(NAMES);

// biome-ignore format: a table is read by its columns
const PRINTED: Readonly<Record<FailureClass, readonly string[]>> = {
  maas_unavailable:             ["retry-stage"],
  credentials_rejected:         ["millwright fleet site update lab --api-key-file -", "retry-stage"],
  site_unavailable:             ["millwright fleet site update lab --enable", "retry-stage"],
  credentials_missing:          ["millwright fleet site update lab --api-key-file -", "millwright machine update m-1 --bmc-endpoint 10.0.0.1", "millwright machine set-credentials m-1", "retry-stage"],
  bundle_missing:               ["millwright cloud-init create late --file -", "millwright cloud-init delete late", "rerun"],
  image_missing:                ["retry-stage"],
  conflicting_candidates:       ["retry-stage"],
  identity_mismatch:            ["retry-stage"],
  machine_deleted_in_maas:      ["millwright fleet decommission fn-1 --mode full_decommission", "restart-clean"],
  commissioning_failed:         ["resume"],
  commissioning_stuck:          ["restart-clean"],
  testing_failed:               ["resume"],
  machine_not_usable:           ["retry-stage"],
  boss_disk_not_found:          ["retry-stage"],
  roce_assignment_missing:      ["millwright fleet roce import --site lab --file -", "millwright fleet roce import --site lab --file -", "retry-stage"],
  pxe_interface_not_fixable:    ["retry-stage"],
  deploy_failed:                ["retry-stage"],
  deploy_stuck:                 ["restart-clean"],
  datasource_failed_repeatedly: ["retry-stage"],
  hardware_sync_not_enabled:    ["restart-clean"],
  hardware_sync_unhealthy:      ["retry-stage"],
  enrollment_timed_out:         ["retry-stage"],
  ssh_seed_failed:              ["retry-stage"],
  drift_not_adoptable:          ["rerun"],
  allocation_in_use:            ["millwright fleet allocation force-release fa-1", "millwright fleet allocation release fa-1", "", "retry-stage"],
  drain_failed:                 ["resume"],
  cleanup_failed:               ["retry-stage"],
  validation_failed:            ["retry-stage"],
  uninstall_failed:             ["resume"],
  release_failed:               ["retry-stage"],
  erase_failed:                 ["retry-stage"],
  power_off_failed:             ["retry-stage"],
  other:                        ["retry-stage"],
};

test("what is printed for each class: what Millwright lacks, in its order, and then the action", () => {
  const printed = Object.fromEntries(
    (Object.keys(FAILURE_CLASSES) as FailureClass[]).map((name) => {
      const { lacks = [], action } = specOf(name);
      return [name, [...lacks.map(commandOf), action]];
    }),
  );
  expect(printed).toEqual(PRINTED);
});

test("every lack is one that a class names, and no command of it is for its reader to fill in", () => {
  const named = new Set((Object.keys(FAILURE_CLASSES) as FailureClass[]).flatMap((name) => specOf(name).lacks ?? []));
  expect(Object.keys(LACKS).filter((lack) => !named.has(lack as Lack))).toEqual([]);
  for (const lack of Object.keys(LACKS) as Lack[]) expect(commandOf(lack)).toMatch(/^$|^millwright [a-z0-9 ./_-]+$/);
});
