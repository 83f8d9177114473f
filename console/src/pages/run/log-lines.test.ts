import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { LogChunkSchema } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { indexOfNumber, type Lines, LogLines, linesThat, placeOfStep } from "./log-lines.ts";

const chunk = (data: Uint8Array | string, stream = "stdout", step = "s") =>
  create(LogChunkSchema, { stream, step, data: typeof data === "string" ? new TextEncoder().encode(data) : data });
const each = <T>(lines: Lines, take: (index: number) => T) => Array.from({ length: lines.count }, (_, n) => take(n));
const texts = (lines: Lines) => each(lines, (n) => lines.at(n)?.text);
const numbered = (lines: Lines) => new Map(each(lines, (n) => [lines.at(n)?.text, lines.numberOf(n)]));

test("lines and letters that were cut in two are whole again", () => {
  const lines = new LogLines();
  const bytes = new TextEncoder().encode("één\nzw");
  for (const byte of bytes) lines.append(chunk(Uint8Array.of(byte)));
  expect(texts(lines.all())).toEqual(["één", "zw"]);
  lines.append(chunk("ei\r\n"));
  expect(texts(lines.all())).toEqual(["één", "zwei"]);
});

test("what another stream says begins a line of its own", () => {
  const lines = new LogLines();
  lines.append(chunk("half"));
  lines.append(chunk("wrong\n", "stderr"));
  const all = lines.all();
  expect(each(all, (n) => all.at(n))).toMatchObject([
    { text: "half", isError: false },
    { text: "wrong", isError: true },
  ]);
});

test("what is put before joins the line that was cut, and the lines that were here keep their numbers", () => {
  const whole = new TextEncoder().encode("first\nsécond\nthird\nfourth");
  const cut = 8; // within the é
  const lines = new LogLines();
  lines.append(chunk(whole.slice(cut)));
  const before = numbered(lines.all());
  lines.prepend([chunk(whole.slice(0, cut))]);
  expect(texts(lines.all())).toEqual(["first", "sécond", "third", "fourth"]);
  const after = numbered(lines.all());
  for (const text of ["third", "fourth"]) expect(after.get(text)).toBe(before.get(text));
  lines.append(chunk(" ends\n"));
  expect(texts(lines.all())).toEqual(["first", "sécond", "third", "fourth ends"]);
});

test("lines as they were stay as they were when more is written", () => {
  const lines = new LogLines();
  lines.append(chunk("one\ntw"));
  const then = lines.all();
  lines.append(chunk("o\nthree\n"));
  expect(texts(then)).toEqual(["one", "tw"]);
});

test("lines that are wanted are found by their numbers among all", () => {
  const lines = new LogLines();
  lines.append(chunk("a1\nb1\na2\nb2\n"));
  const wanted = linesThat(lines.all(), ({ text }) => text.startsWith("b"));
  expect(texts(wanted)).toEqual(["b1", "b2"]);
  expect([0, 1, 2, 3, 4].map((number) => indexOfNumber(wanted, number))).toEqual([0, 0, 1, 1, 2]);
});

test("a step is found where it began, and where it failed", () => {
  const lines = new LogLines();
  lines.append(chunk("one\n", "stdout", "a"));
  lines.append(chunk("try\n", "stdout", "b"));
  lines.append(chunk("bad\n", "stderr", "b"));
  lines.append(chunk("undone\n", "stdout", "b"));
  const all = lines.all();
  expect(placeOfStep(all, "b", false)).toBe(1);
  expect(placeOfStep(all, "b", true)).toBe(2);
  expect(placeOfStep(all, "a", true)).toBe(0);
  expect(placeOfStep(all, "c", true)).toBe(-1);
});

test("a hundred thousand lines are at hand without being copied", () => {
  const lines = new LogLines();
  for (let n = 0; n < 100; n += 1) lines.append(chunk("x\n".repeat(1_000)));
  expect(lines.all().count).toBe(100_000);
  expect(lines.all().at(99_999)?.text).toBe("x");
});
