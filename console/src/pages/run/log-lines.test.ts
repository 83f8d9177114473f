import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { LogChunkSchema } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { LogLines, MOST_LINES } from "./log-lines.ts";

const chunk = (data: Uint8Array | string, stream = "stdout") =>
  create(LogChunkSchema, { stream, step: "s", data: typeof data === "string" ? new TextEncoder().encode(data) : data });
const texts = (lines: LogLines) => lines.all().map(({ text }) => text);

test("lines and letters that were cut in two are whole again", () => {
  const lines = new LogLines();
  const bytes = new TextEncoder().encode("één\nzw");
  for (const byte of bytes) lines.add(chunk(Uint8Array.of(byte)));
  expect(texts(lines)).toEqual(["één", "zw"]);
  lines.add(chunk("ei\r\n"));
  expect(texts(lines)).toEqual(["één", "zwei"]);
});

test("what another stream says begins a line of its own", () => {
  const lines = new LogLines();
  lines.add(chunk("half"));
  lines.add(chunk("wrong\n", "stderr"));
  expect(lines.all()).toMatchObject([
    { text: "half", isError: false, number: 1 },
    { text: "wrong", isError: true, number: 2 },
  ]);
});

test("of a very long log the newest lines are kept, with their numbers", () => {
  const lines = new LogLines();
  for (let n = 0; n < 3; n += 1) lines.add(chunk("x\n".repeat(MOST_LINES)));
  expect(lines.all().length).toBeLessThanOrEqual(MOST_LINES * 1.2);
  expect(lines.all().at(-1)?.number).toBe(3 * MOST_LINES);
});
