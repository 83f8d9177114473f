import { describe, expect, test } from "vitest";
import { changesState, decide, fail, follow, followOrRefuse, isPastDeadline, isStuck } from "./decide.ts";
import { AppError } from "./errors.ts";
import {
  ANY,
  asked,
  caused,
  defineLifecycle,
  GONE,
  type Json,
  on,
  onFailure,
  reported,
  STAY,
  type Thing,
  when,
} from "./lifecycle.ts";
import { milliseconds, minutes } from "./time/duration.ts";

interface Oven extends Thing {
  readonly facts: { readonly burns: number };
  readonly condemned: boolean;
  readonly bakeRequest: { readonly id: string; readonly dish: string } | null;
}

const isCondemned = (oven: Oven) => oven.condemned;
const bakeRequested = (oven: Oven) => oven.bakeRequest !== null;
const burntOften = (oven: Oven) => oven.facts.burns >= 2;
const itsRequest = { field: "bakeRequest", carried: (oven: Oven) => oven.state.request } as const;

const ovenLifecycle = defineLifecycle<Oven>()({
  kind: "oven",
  initial: "cold",
  // biome-ignore format: a table is read by its columns
  states: {
    cold:     { rest: true, doc: "Nothing in it." },
    baking:   { sla: minutes(5), deadline: minutes(4), doc: "Something in it." },
    broken:   { rest: true, doc: "Waits for a person." },
    scrapped: { terminal: true, doc: "No more." },
  },
  // biome-ignore format: a table is read by its columns
  transitions: [
    ["cold",   when(isCondemned),      "scrapped"],
    ["cold",   when(bakeRequested),    "baking",   { carries: ({ bakeRequest }) => ({ dish: bakeRequest?.dish ?? "", request: bakeRequest }) }],
    ["baking", on("baked"),            "cold",     { clears: [itsRequest] }],
    ["baking", onFailure("burnt"),     "broken",   { provided: burntOften, clears: [itsRequest], carries: (_, { message }) => ({ cause: message ?? "" }) }],
    ["baking", onFailure("burnt"),     STAY,       { sets: ({ facts }) => ({ burns: facts.burns + 1 }) }],
    ["baking", reported("door_opened"), STAY,      { sets: (_, { data }) => ({ draught: data?.draught ?? null }), carries: (oven) => ({ ...oven.state, door: "open" }) }],
    ["baking", caused("power_lost"),   "broken",   { clears: [{ ...itsRequest, outcome: "failed" }] }],
    ["cold",   on("lit_by_hand"),      "baking",   { supersedes: ["bakeRequest"] }],
    ["broken", asked("repair"),        "cold"],
    ["broken", asked("repair_again"),  "cold",     { provided: burntOften }],
    ["cold",   asked("take_away"),     GONE],
    ["cold",   asked("bake"),          "baking",   { provided: burntOften }],
    ["cold",   asked("bake"),          "baking",   { carries: () => ({ dish: "bread" }) }],
    [ANY,      caused("house_burnt"),  "broken"],
  ],
});

const oven = (change: Partial<Oven> = {}): Oven => ({
  id: "oven-1",
  version: 7,
  state: { name: "cold" },
  stateSince: new Date(0),
  basis: 1,
  stateVersion: 3,
  facts: { burns: 0 },
  outcome: null,
  condemned: false,
  bakeRequest: null,
  ...change,
});
const baking = (change: Partial<Oven> = {}, carried: { readonly [name: string]: Json } = {}) =>
  oven({ state: { name: "baking", ...carried }, ...change });

describe("deciding", () => {
  test("hands a thing to its handler when no guard holds", () => {
    expect(decide(ovenLifecycle, oven())).toEqual({ kind: "handle" });
  });

  test("takes the controller's row whose guard holds, with what the row carries", () => {
    const bakeRequest = { id: "r1", dish: "cake" };
    expect(decide(ovenLifecycle, oven({ bakeRequest }))).toEqual({
      kind: "move",
      move: {
        from: "cold",
        to: "baking",
        gone: false,
        carried: { dish: "cake", request: bakeRequest },
        facts: {},
        ends: [],
        owner: "controller",
        trigger: "bake_requested",
        message: undefined,
      },
    });
  });

  test("takes the first of two rows whose guards hold", () => {
    const decision = decide(ovenLifecycle, oven({ condemned: true, bakeRequest: { id: "r1", dish: "cake" } }));
    expect(decision).toMatchObject({ move: { to: "scrapped", trigger: "is_condemned" } });
  });

  test("leaves a terminal thing alone, whatever its guards say", () => {
    const scrapped = oven({ state: { name: "scrapped" }, condemned: true, bakeRequest: { id: "r1", dish: "cake" } });
    expect(decide(ovenLifecycle, scrapped)).toEqual({ kind: "handle" });
  });

  test("does not guess about a state that the table does not know", () => {
    expect(() => decide(ovenLifecycle, oven({ state: { name: "frozen" } }))).toThrow(
      "oven oven-1 is in state frozen, which its lifecycle does not know",
    );
  });
});

describe("following what happened", () => {
  test("ends a request as failed where the row says so, although another thing caused it", () => {
    const request = { id: "r1", dish: "cake" };
    const move = follow(ovenLifecycle, baking({}, { request }), { owner: "other", name: "power_lost" });
    expect(move?.ends).toEqual([{ field: "bakeRequest", request, outcome: "failed", message: undefined }]);
  });

  test("names the requests that the row supersedes; which they are is known under the lock", () => {
    const move = follow(ovenLifecycle, oven(), { owner: "handler", name: "lit_by_hand" });
    expect(move).toMatchObject({ supersedes: ["bakeRequest"], ends: [] });
  });

  test("ends the request that the state carried, with the whole of it", () => {
    const request = { id: "r1", dish: "cake" };
    const move = follow(ovenLifecycle, baking({ bakeRequest: { id: "r2", dish: "pie" } }, { request }), {
      owner: "handler",
      name: "baked",
      message: "golden",
    });
    expect(move).toMatchObject({
      to: "cold",
      carried: {},
      ends: [{ field: "bakeRequest", request, outcome: "completed", message: "golden" }],
      message: "golden",
    });
  });

  test("ends nothing when the state carried no request", () => {
    expect(follow(ovenLifecycle, baking(), { owner: "handler", name: "baked" })?.ends).toEqual([]);
  });

  test("knows nothing of a word that belongs to another owner", () => {
    expect(follow(ovenLifecycle, baking(), { owner: "agent", name: "baked" })).toBeUndefined();
    expect(follow(ovenLifecycle, baking(), { owner: "caller", name: "door_opened" })).toBeUndefined();
  });

  test("knows nothing of a word that belongs to another state", () => {
    expect(follow(ovenLifecycle, oven(), { owner: "handler", name: "baked" })).toBeUndefined();
  });

  test("stays with what was carried, and sets what the row sets", () => {
    const move = follow(ovenLifecycle, baking({ facts: { burns: 1 } }, { dish: "cake" }), {
      owner: "handler",
      name: "burnt",
    });
    expect(move).toMatchObject({
      from: "baking",
      to: "baking",
      gone: false,
      carried: { dish: "cake" },
      facts: { burns: 2 },
    });
  });

  test("stays with what the row carries where it says so, and reads the data that came with it", () => {
    const move = follow(ovenLifecycle, baking({}, { dish: "cake" }), {
      owner: "agent",
      name: "door_opened",
      data: { draught: 3 },
    });
    expect(move).toMatchObject({ to: "baking", carried: { dish: "cake", door: "open" }, facts: { draught: 3 } });
  });

  test("takes the first row whose condition holds", () => {
    const worn = follow(ovenLifecycle, baking({ facts: { burns: 2 } }), {
      owner: "handler",
      name: "burnt",
      message: "char",
    });
    expect(worn).toMatchObject({ to: "broken", carried: { cause: "char" }, facts: {} });
    expect(follow(ovenLifecycle, oven(), { owner: "caller", name: "bake" })?.carried).toEqual({ dish: "bread" });
    expect(follow(ovenLifecycle, oven({ facts: { burns: 2 } }), { owner: "caller", name: "bake" })?.carried).toEqual(
      {},
    );
  });

  test("removes the thing along a row to GONE, without inventing a state", () => {
    const move = follow(ovenLifecycle, oven(), { owner: "caller", name: "take_away" });
    expect(move).toMatchObject({ from: "cold", to: "cold", gone: true });
  });

  test("takes a row of ANY from every state but its target and the terminal ones", () => {
    const from = (name: string) =>
      follow(ovenLifecycle, oven({ state: { name } }), { owner: "other", name: "house_burnt" })?.to;
    expect(from("cold")).toBe("broken");
    expect(from("baking")).toBe("broken");
    expect(from("broken")).toBeUndefined();
    expect(from("scrapped")).toBeUndefined();
  });
});

describe("failing", () => {
  test("goes along the failure row, and ends the request as failed with the message", () => {
    const request = { id: "r1", dish: "cake" };
    expect(fail(ovenLifecycle, baking({ facts: { burns: 2 } }, { request }), { message: "too hot" })).toMatchObject({
      to: "broken",
      trigger: "burnt",
      carried: { cause: "too hot" },
      ends: [{ field: "bakeRequest", request, outcome: "failed", message: "too hot" }],
    });
  });

  test("leads nowhere from a state without a failure row", () => {
    expect(fail(ovenLifecycle, oven(), { message: "too hot" })).toBeUndefined();
  });
});

describe("a verb", () => {
  test("that the state knows is followed", () => {
    expect(
      followOrRefuse(ovenLifecycle, oven({ state: { name: "broken" } }), { owner: "caller", name: "repair" }).to,
    ).toBe("cold");
  });

  test("that the state does not know is refused with those that it does", () => {
    const refused = () => followOrRefuse(ovenLifecycle, oven(), { owner: "caller", name: "repair" });
    expect(refused).toThrow(AppError);
    expect(refused).toThrow("oven oven-1 is cold: repair is not possible; possible: take_away, bake");
  });

  test("is not offered in place of another while its own guard refuses it", () => {
    const refused = (burns: number) => () =>
      followOrRefuse(ovenLifecycle, oven({ state: { name: "broken" }, facts: { burns } }), {
        owner: "caller",
        name: "bake",
      });
    expect(refused(0)).toThrow(/possible: repair$/);
    expect(refused(2)).toThrow(/possible: repair, repair_again$/);
  });

  test("is refused without a list where nothing is possible", () => {
    const scrapped = oven({ state: { name: "scrapped" } });
    let message = "";
    try {
      followOrRefuse(ovenLifecycle, scrapped, { owner: "caller", name: "repair" });
    } catch (error) {
      message = (error as AppError).message;
      expect((error as AppError).kind).toBe("failed_precondition");
    }
    expect(message).toBe("oven oven-1 is scrapped: repair is not possible");
  });
});

test("a state is entered again by another name, or by something else that it carries", () => {
  const carrying = oven({ state: { name: "baking", request: { id: "r1", tray: [1, 2] } } });
  const carried = { request: { id: "r1", tray: [1, 2] } };
  expect(changesState(carrying, { to: "baking", carried })).toBe(false);
  expect(changesState(carrying, { to: "broken", carried })).toBe(true);
  expect(changesState(carrying, { to: "baking", carried: { request: { id: "r1", tray: [2, 1] } } })).toBe(true);
  expect(changesState(carrying, { to: "baking", carried: {} })).toBe(true);
});

describe("time in a state", () => {
  const later = (ms: number) => new Date(milliseconds(ms));

  test("makes a thing stuck only once it is past the SLA of its state", () => {
    expect(isStuck(ovenLifecycle, baking(), later(minutes(5)))).toBe(false);
    expect(isStuck(ovenLifecycle, baking(), later(minutes(5) + 1))).toBe(true);
    expect(isStuck(ovenLifecycle, oven(), later(minutes(50_000)))).toBe(false);
  });

  test("ends waiting only past the deadline of its state", () => {
    expect(isPastDeadline(ovenLifecycle, baking(), later(minutes(4)))).toBe(false);
    expect(isPastDeadline(ovenLifecycle, baking(), later(minutes(4) + 1))).toBe(true);
    expect(isPastDeadline(ovenLifecycle, oven(), later(minutes(50_000)))).toBe(false);
  });
});
