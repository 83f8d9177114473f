import { expect, test } from "vitest";
import { grouped } from "./conditions.ts";

type Line = Parameters<typeof grouped>[0][number];
const line = (id: string, reason = "NoAnswer"): Line => [
  { kind: "machine", id, condition: "Reachable", reason, message: "no route" },
  "a machine does not answer",
  "warn",
];
const machines = (count: number) => Array.from({ length: count }, (_, at) => line(`m-${at}`));

test("a few machines have a line each", () => {
  expect(grouped(machines(5))).toEqual(machines(5));
});

test("many at once are one line, that counts them and names the first", () => {
  expect(grouped([...machines(60), line("other", "HostKeyChanged")])).toEqual([
    [
      {
        ...{ kind: "machine", condition: "Reachable", reason: "NoAnswer", message: "no route", machines: 60 },
        ids: Array.from({ length: 50 }, (_, at) => `m-${at}`),
      },
      "a machine does not answer",
      "warn",
    ],
    line("other", "HostKeyChanged"),
  ]);
});
