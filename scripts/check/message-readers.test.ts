import { expect, test } from "vitest";
import { findMessageReaders } from "./message-readers.ts";

const faultsOf = (text: string, path = "src/services/run/starts.ts") => findMessageReaders({ path, text });

test.each([
  'if (error.message.startsWith("cannot listen on ")) return;',
  'const isGone = messageOf(error).includes("does not exist");',
  "if (/wrong credentials/.test(error.message)) stop();",
  "const name = NAMED.exec(message)?.[1];",
  'const why = error.message.replace(/^plan_id: /, "");',
  'if (step?.message === "under way") wait();',
  "const [, missing] = /^(Node|Group) not found/.exec(detail) ?? [];",
  'const isFile = rule?.match(/path of a file/) ? "file" : "dir";',
])("a message is for people: %s", (line) => {
  expect(faultsOf(`const before = 1;\n${line}\n`)).toEqual([
    "src/services/run/starts.ts:2 reads a message; give it a cause, a field or a record to go by",
  ]);
});

test.each([
  'if (condition.reason === "HostKeyChanged") stop();',
  'if (message === "") return;',
  'const said = message.replace(/\\s+/g, " ").trim().slice(0, 80);',
  '// error.message.startsWith("x") was here',
  "log.warn({ reason: messageOf(error) });",
])("what reads none is right: %s", (line) => {
  expect(faultsOf(line)).toEqual([]);
});

test("what other software says may have to be read", () => {
  const line = "if (/RAKP 2/.test(error.message)) stop();";
  expect(faultsOf(line, "src/providers/ipmi/answers.ts")).toEqual([]);
  expect(faultsOf(line, "src/services/run/starts.test.ts")).toEqual([]);
});
