import { expect, test } from "vitest";
import { mix } from "./mixed-sequencer.ts";

const files = (project: string, count: number) => Array.from({ length: count }, (_, at) => `${project} ${at + 1}`);
const projectOf = (file: string) => file.split(" ", 1)[0] ?? "";

test("each project is spread over the run, in its own order, and what takes a moment is what ends it", () => {
  const given = [...files("chaos", 2), ...files("e2e", 2), ...files("integration", 4), ...files("unit", 8)];
  expect(mix(given, projectOf)).toEqual([
    ...["chaos 1", "e2e 1", "integration 1", "unit 1"],
    ...["unit 2", "integration 2", "unit 3"],
    ...["chaos 2", "e2e 2", "unit 4", "integration 3", "unit 5"],
    ...["unit 6", "integration 4", "unit 7", "unit 8"],
  ]);
});

test("files of a project that it does not know are spread as well", () => {
  expect(mix([...files("new", 2), ...files("unit", 2)], projectOf)).toEqual(["new 1", "unit 1", "new 2", "unit 2"]);
});
