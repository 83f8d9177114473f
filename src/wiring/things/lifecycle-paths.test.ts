import { describe, expect, test } from "vitest";
import { type Path, pathsThrough } from "../../../test/support/lifecycle-paths.ts";
import { ANY, asked, defineLifecycle, GONE, on, rowsFrom, STAY, type Thing } from "../../kernel/lifecycle.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { allStores } from "./all-things.ts";

const told = (paths: readonly Path<Thing>[]) =>
  paths.map((path) => path.map(({ from, row, to }) => `${from} -${row[1].name}-> ${to ?? "gone"}`));

describe("the paths through a table", () => {
  test("go on for as long as there is a new row in reach, and leave the end of the thing for last", () => {
    const lifecycle = defineLifecycle<Thing>()({
      kind: "door",
      initial: "shut",
      states: {
        shut: { rest: true, doc: "Nobody passes." },
        opening: { sla: minutes(1), doc: "Somebody will." },
        walled_up: { terminal: true, doc: "Nobody ever will." },
      },
      transitions: [
        ["shut", asked("open"), "opening"],
        ["opening", on("opened"), "shut"],
        ["opening", on("creaked"), STAY],
        [ANY, asked("remove"), GONE],
        ["shut", asked("wall_up"), "walled_up"],
      ],
    });
    expect(told(pathsThrough(lifecycle))).toEqual([
      ["shut -open-> opening", "opening -opened-> shut", "shut -wall_up-> walled_up"],
      ["shut -remove-> gone"],
      ["shut -open-> opening", "opening -creaked-> opening", "opening -remove-> gone"],
    ]);
  });

  test("are none for a table without rows", () => {
    const lifecycle = defineLifecycle<Thing>()({
      kind: "stone",
      initial: "lying",
      states: { lying: { rest: true, doc: "As ever." } },
      transitions: [],
    });
    expect(pathsThrough(lifecycle)).toEqual([]);
  });
});

describe.each([...allStores.values()].map(({ lifecycle }) => [lifecycle.kind, lifecycle] as const))(
  "the paths through %s",
  (_, lifecycle) => {
    test("take every row from every state that it applies to", () => {
      const wanted = Object.keys(lifecycle.states).flatMap((state) =>
        rowsFrom(lifecycle, state).map((row) => [state, row]),
      );
      const taken = pathsThrough(lifecycle)
        .flat()
        .map(({ from, row }) => [from, row]);
      for (const edge of wanted) expect(taken).toContainEqual(edge);
      const rows = new Set(taken.map(([, row]) => row));
      expect(rows.size).toBe(lifecycle.transitions.length);
    });

    test("are the same each time", () => {
      expect(pathsThrough(lifecycle)).toEqual(pathsThrough(lifecycle));
    });
  },
);
