/**
 * Tables and handlers that must not compile. The judge is `tsc`: a mistake that it no longer sees leaves its
 * `@ts-expect-error` unused, which is an error itself, and `npm run check` fails. Where the loader refuses the same mistake,
 * the test says so too.
 */
import { describe, expect, expectTypeOf, test } from "vitest";
import { create, move, observe, request, require, wake } from "./effects.ts";
import {
  ANY,
  asked,
  type CauseOf,
  caused,
  defineLifecycle,
  type EventOf,
  GONE,
  on,
  onFailure,
  type StateOf,
  type StateSpec,
  type Thing,
  when,
} from "./lifecycle.ts";
import { type Handlers, happened, nothingToDo } from "./outcome.ts";
import { minutes } from "./time/duration.ts";

interface Widget extends Thing {
  readonly repairRequest: { readonly id: string } | null;
}
const resting: StateSpec = { rest: true, doc: "At rest." };
const working: StateSpec = { sla: minutes(5), doc: "At work." };
const define = defineLifecycle<Widget>();

describe("a table does not compile when", () => {
  test("a row leads to an unknown state", () => {
    const wrong = () =>
      define({
        kind: "widget",
        initial: "idle",
        states: { idle: resting },
        // @ts-expect-error: there is no state "brokne"
        transitions: [["idle", asked("break"), "brokne"]],
      });
    expect(wrong).toThrow("leads to brokne");
  });

  test("a row starts in an unknown state", () => {
    const wrong = () =>
      define({
        kind: "widget",
        initial: "idle",
        states: { idle: resting },
        // @ts-expect-error: there is no state "ilde"
        transitions: [["ilde", asked("scrap"), GONE]],
      });
    expect(wrong).toThrow("starts in ilde");
  });

  test("the initial state is unknown", () => {
    const wrong = () =>
      define({
        kind: "widget",
        // @ts-expect-error: there is no state "new"
        initial: "new",
        states: { idle: resting },
        transitions: [],
      });
    expect(wrong).toThrow("initial state new");
  });

  test("a row clears a request field that the thing does not have", () => {
    const lifecycle = define({
      kind: "widget",
      initial: "idle",
      states: { idle: resting },
      // @ts-expect-error: a widget has a repairRequest, no "repairReqest"
      transitions: [["idle", asked("scrap"), GONE, { clears: [{ field: "repairReqest", carried: () => null }] }]],
    });
    expect(lifecycle.kind).toBe("widget");
  });

  test("a guard asks for what the thing does not have", () => {
    const isRed = (thing: Widget & { colour: string }) => thing.colour === "red";
    const lifecycle = define({
      kind: "widget",
      initial: "idle",
      states: { idle: resting },
      // @ts-expect-error: a widget has no colour
      transitions: [["idle", when(isRed), GONE]],
    });
    expect(lifecycle.kind).toBe("widget");
  });

  test("a state has a property that no state has", () => {
    const lifecycle = define({
      kind: "widget",
      initial: "idle",
      // @ts-expect-error: the word is `rest`
      states: { idle: { resting: true, sla: minutes(5), doc: "At rest." } },
      transitions: [["idle", on("done"), GONE]],
    });
    expect(lifecycle.kind).toBe("widget");
  });
});

const widgetLifecycle = define({
  kind: "widget",
  initial: "idle",
  states: { idle: resting, testing: working, shelved: resting },
  transitions: [
    ["idle", asked("test"), "testing"],
    ["testing", on("passed"), "idle"],
    ["testing", onFailure("test_failed"), "idle"],
    [ANY, on("worn_out"), "shelved"],
  ],
});
type WidgetLifecycle = typeof widgetLifecycle;
type WidgetHandlers = Handlers<WidgetLifecycle, Widget, object>;

const widget: Widget = {
  id: "w1",
  version: 1,
  state: { name: "idle" },
  stateSince: new Date(0),
  basis: 1,
  stateVersion: 1,
  facts: {},
  outcome: null,
  repairRequest: null,
};

describe("handlers", () => {
  test("know the events of their own state, those of ANY included, and not of the target of ANY", () => {
    expectTypeOf<StateOf<WidgetLifecycle>>().toEqualTypeOf<"idle" | "testing" | "shelved">();
    expectTypeOf<EventOf<WidgetLifecycle, "testing">>().toEqualTypeOf<"passed" | "test_failed" | "worn_out">();
    expectTypeOf<EventOf<WidgetLifecycle, "idle">>().toEqualTypeOf<"worn_out">();
    expectTypeOf<EventOf<WidgetLifecycle, "shelved">>().toEqualTypeOf<never>();
    expect(Object.keys(widgetLifecycle.states)).toEqual(["idle", "testing", "shelved"]);
  });

  test("compile when each state with events has one, and a resting state may have one that only observes", async () => {
    const handlers: WidgetHandlers = {
      idle: async () => happened("worn_out"),
      testing: async () => happened("passed"),
      shelved: async () => nothingToDo(null),
    };
    expect(await handlers.testing(widget, {})).toEqual({ type: "happened", event: "passed" });
  });

  test("do not compile when a state whose rows wait for one has none", () => {
    // @ts-expect-error: "testing" is missing
    const handlers: WidgetHandlers = { idle: async () => happened("worn_out") };
    expect(handlers).not.toHaveProperty("testing");
  });

  test("do not compile when one reports an event that its state does not know", async () => {
    const handlers: WidgetHandlers = {
      // @ts-expect-error: "passed" is an event of testing, not of idle
      idle: async () => happened("passed"),
      testing: async () => happened("passed"),
    };
    expect(await handlers.idle(widget, {})).toEqual({ type: "happened", event: "passed" });
  });

  test("may report what followed, which is any event of the table", async () => {
    const handlers: WidgetHandlers = {
      idle: async () => happened("worn_out"),
      testing: async () => happened("passed", { followedBy: [{ event: "worn_out" }] }),
    };
    expect(await handlers.testing(widget, {})).toMatchObject({ followedBy: [{ event: "worn_out" }] });
  });

  test("do not compile when what followed is no event of the table", async () => {
    const handlers: WidgetHandlers = {
      idle: async () => happened("worn_out"),
      // @ts-expect-error: nothing like it can happen to a widget
      testing: async () => happened("passed", { followedBy: [{ event: "wron_out" }] }),
    };
    expect(await handlers.testing(widget, {})).toMatchObject({ followedBy: [{ event: "wron_out" }] });
  });

  test("do not compile when one of a state without events reports one", () => {
    const handlers: WidgetHandlers = {
      idle: async () => nothingToDo(null),
      testing: async () => nothingToDo(null),
      // @ts-expect-error: nothing can happen in shelved that the table knows
      shelved: async () => happened("worn_out"),
    };
    expect(handlers).toHaveProperty("shelved");
  });

  test("do not compile for a state that does not exist", () => {
    const handlers: WidgetHandlers = {
      idle: async () => nothingToDo(null),
      testing: async () => nothingToDo(null),
      // @ts-expect-error: there is no such state
      tseting: async () => nothingToDo(null),
    };
    expect(handlers).toHaveProperty("tseting");
  });
});

describe("effects", () => {
  const rackLifecycle = define({
    kind: "rack",
    initial: "idle",
    states: { idle: resting, draining: working, off: resting },
    transitions: [
      ["idle", caused("tray_failed"), "draining"],
      ["draining", on("drained"), "off"],
      ["draining", caused("power_lost"), "off"],
      ["off", asked("start"), "idle"],
    ],
  });

  test("know the causes of the table of the thing that they move, and no other trigger", () => {
    expectTypeOf<CauseOf<typeof rackLifecycle>>().toEqualTypeOf<"tray_failed" | "power_lost">();
    expectTypeOf<CauseOf<WidgetLifecycle>>().toEqualTypeOf<never>();
    expect(move(rackLifecycle, "r1", "tray_failed", { message: "tray 3", data: { tray: 3 } })).toEqual({
      type: "move",
      kind: "rack",
      id: "r1",
      cause: "tray_failed",
      message: "tray 3",
      data: { tray: 3 },
    });
  });

  test("do not compile with a cause that the table lacks", () => {
    // @ts-expect-error: a typing error
    expect(move(rackLifecycle, "r1", "tray_faild")).toMatchObject({ cause: "tray_faild" });
    // @ts-expect-error: a caller's verb, which no other thing can cause
    expect(move(rackLifecycle, "r1", "start")).toMatchObject({ cause: "start" });
    // @ts-expect-error: an event of the rack's own handler
    expect(move(rackLifecycle, "r1", "drained")).toMatchObject({ cause: "drained" });
    // @ts-expect-error: nothing can cause anything in a widget
    expect(move(widgetLifecycle, "w1", "tray_failed")).toMatchObject({ kind: "widget" });
  });

  test("know the request fields of the thing that they ask", () => {
    expect(request(rackLifecycle, "r1", "repairRequest", { part: "fan" })).toEqual({
      type: "request",
      kind: "rack",
      id: "r1",
      field: "repairRequest",
      wish: { part: "fan" },
    });
    // @ts-expect-error: a widget has a repairRequest, no "repairReqest"
    expect(request(rackLifecycle, "r1", "repairReqest", {})).toMatchObject({ field: "repairReqest" });
    // @ts-expect-error: its state is no request
    expect(request(rackLifecycle, "r1", "state", {})).toMatchObject({ field: "state" });
  });

  test("name what they touch by its declaration", () => {
    expect(create(rackLifecycle, "r1", { name: "A" }, { mustBeNew: true })).toEqual({
      type: "create",
      kind: "rack",
      id: "r1",
      row: { name: "A" },
      mustBeNew: true,
    });
    expect(observe(rackLifecycle, "r1", { trays: 18 })).toEqual({
      type: "observe",
      kind: "rack",
      id: "r1",
      facts: { trays: 18 },
      observed: [],
    });
    expect(wake(rackLifecycle, "r1")).toEqual({ type: "wake", kind: "rack", id: "r1" });
    expect(require(rackLifecycle, "r1", { notDeleted: true })).toEqual({
      type: "require",
      kind: "rack",
      id: "r1",
      notDeleted: true,
    });
  });
});
