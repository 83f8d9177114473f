import { expect, test } from "vitest";
import { findForeignWords, stepKindsOf, technologiesOf } from "./executor-words.ts";

const sources = [
  { path: "src/providers/redfish/client.ts", text: "" },
  { path: "src/providers/redfish/shelf/power.ts", text: "" },
  { path: "src/providers/ipmi/power.ts", text: "" },
  { path: "src/providers/ssh/connect.ts", text: "" },
  { path: "src/providers/transport/breaker.ts", text: "" },
  {
    path: "src/runs/steps/join.ts",
    text: 'export const join = defineStep({\n  kind: "join",\n  refersTo: [{ kind: "cluster" }],\n});',
  },
  { path: "src/runs/steps/fleet/drain.ts", text: 'defineStep({\n  kind: "drain_node",\n});' },
  { path: "src/runs/steps/fleet/clean.ts", text: 'defineStep({\n  kind: "validate_clean",\n});' },
  { path: "src/runs/steps/join.test.ts", text: '  kind: "toy",' },
];
const technologies = technologiesOf(sources);
const stepKinds = stepKindsOf(sources);
const faultsOf = (path: string, text: string) => findForeignWords({ path, text }, { technologies, stepKinds });

test("the technologies are the folders of the providers, and the kinds of steps those that are defined", () => {
  expect(technologies).toEqual(["redfish", "ipmi", "ssh"]);
  expect(stepKinds).toEqual(["join", "drain_node", "validate_clean"]);
});

test("the executor names none of them in its code", () => {
  const text =
    '// IPMI has no such thing\nif (provider.name === "redfish") act();\nconst overIpmi = true;\nif (isShutOut(error)) stop();\n';
  expect(faultsOf("src/runs/executor/act.ts", text)).toEqual([
    "src/runs/executor/act.ts:2 names redfish; the executor knows steps and capabilities only",
    "src/runs/executor/act.ts:3 names ipmi; the executor knows steps and capabilities only",
  ]);
});

test.each([
  ["a kind of target", "const machineId = run.target.id;", "machine"],
  ["a kind of target in the plural", "for (const racks of all) stop();", "rack"],
  ["what only one kind of target has", "if (phase.isInCluster) stop();", "cluster"],
  ["a kind of step", 'if (step.kind === "join") stop();', "join"],
  ["a kind of step of two words", 'if (step.kind === "drain_node") stop();', "node"],
  ["a kind of step whose words are common", 'if (step.kind === "validate_clean") stop();', "validate_clean"],
])("the executor does not name %s", (_what, text, word) => {
  const said = [expect.stringContaining(`names ${word};`)];
  expect(faultsOf("src/runs/executor/step/act.ts", text)).toEqual(said);
  expect(faultsOf("src/runs/children/sum.ts", text)).toEqual(said);
  expect(faultsOf("src/runs/model/plan/resolve-plan.ts", text)).toEqual(said);
});

test("files that are imported may have such names, and words of step kinds may be used as such", () => {
  expect(
    faultsOf("src/runs/executor/act.ts", 'import { is } from "node:util";\nconst all = names.join(", ");'),
  ).toEqual([]);
});

test("steps, targets, and tests of the executor, may", () => {
  expect(faultsOf("src/runs/steps/reboot.ts", 'const ipmi = "ipmi";')).toEqual([]);
  expect(faultsOf("src/runs/targets/machine.ts", "const machineId = 1;")).toEqual([]);
  expect(faultsOf("src/runs/executor/act.test.ts", 'const ipmi = "ipmi";')).toEqual([]);
});
