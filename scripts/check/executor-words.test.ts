import { expect, test } from "vitest";
import { findTechnologies, technologiesOf } from "./executor-words.ts";

const technologies = technologiesOf([
  { path: "src/providers/redfish/client.ts", text: "" },
  { path: "src/providers/redfish/shelf/power.ts", text: "" },
  { path: "src/providers/ipmi/power.ts", text: "" },
  { path: "src/providers/ssh/connect.ts", text: "" },
  { path: "src/providers/transport/breaker.ts", text: "" },
]);
const faultsOf = (path: string, text: string) => findTechnologies({ path, text }, technologies);

test("the technologies are the folders of the providers", () => {
  expect(technologies).toEqual(["redfish", "ipmi", "ssh"]);
});

test("the executor names none of them in its code", () => {
  const text =
    '// IPMI has no such thing\nif (provider.name === "redfish") act();\nconst overIpmi = true;\nif (isShutOut(error)) stop();\n';
  expect(faultsOf("src/runs/executor/act.ts", text)).toEqual([
    "src/runs/executor/act.ts:2 names redfish; the executor knows capabilities only",
    "src/runs/executor/act.ts:3 names ipmi; the executor knows capabilities only",
  ]);
});

test("steps, and tests of the executor, may", () => {
  expect(faultsOf("src/runs/steps/reboot.ts", 'const ipmi = "ipmi";')).toEqual([]);
  expect(faultsOf("src/runs/executor/act.test.ts", 'const ipmi = "ipmi";')).toEqual([]);
});
