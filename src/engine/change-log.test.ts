import { expect, test } from "vitest";
import type { Cause } from "../kernel/causes.ts";
import { follow } from "../kernel/decide.ts";
import {
  defineLifecycle,
  GONE,
  type JsonObject,
  type Lifecycle,
  on,
  onFailure,
  type Thing,
  when,
} from "../kernel/lifecycle.ts";
import type { Log } from "../kernel/log.ts";
import { minutes } from "../kernel/time/duration.ts";
import { ChangeLog } from "./change-log.ts";
import type { PassResult } from "./pass.ts";

interface Lamp extends Thing {
  readonly request: JsonObject | null;
}

const asked = (lamp: Lamp) => lamp.request !== null;
const itsRequest = { field: "request", carried: (lamp: Lamp) => lamp.state.request } as const;

const lifecycle = defineLifecycle<Lamp>()({
  kind: "lamp",
  initial: "new",
  // biome-ignore format: a table is read by its columns
  states: {
    new:       { sla: minutes(5), doc: "Made." },
    ready:     { rest: true,      doc: "Rests." },
    switching: { sla: minutes(5), doc: "Works." },
    error:     { rest: true,      doc: "Broke." },
  },
  // biome-ignore format: a table is read by its columns
  transitions: [
    ["new",       on("seen"),              "ready"],
    ["ready",     when(asked),             "switching"],
    ["switching", on("switched"),          "ready", { clears: [itsRequest] }],
    ["switching", onFailure("not_switched"), "error", { clears: [itsRequest] }],
    ["error",     on("removed"),           GONE],
  ],
});

const request = { id: "req-1", operation: "power_off" };
const lamp = (change: Partial<Lamp> = {}): Lamp => ({
  id: "l1",
  version: 1,
  basis: 1,
  state: { name: "switching", request },
  stateSince: new Date(0),
  stateVersion: 7,
  facts: {},
  outcome: null,
  request: null,
  ...change,
});
const failing = { type: "failing", reason: "no answer" } as const;
const waiting = { type: "waiting", reason: "still on" } as const;
const pass = (change: Partial<PassResult> = {}): PassResult => ({
  outcome: null,
  effects: [],
  after: null,
  failures: 0,
  error: null,
  cause: null,
  ...change,
});

function listen() {
  const lines: string[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const log: Log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const changes = new ChangeLog(log);
  return {
    lines,
    /** Passes of the same lamp, one after the other; each finds what the previous one left. */
    see(...outcomes: PassResult["outcome"][]) {
      let before: PassResult["outcome"] = null;
      for (const outcome of outcomes) {
        changes.committed({
          lifecycle: lifecycle as unknown as Lifecycle<Thing>,
          thing: lamp({ outcome: before }),
          pass: pass({ outcome }),
        });
        before = outcome;
      }
    },
    move(thing: Lamp, name: string, message?: string, more: Partial<Lifecycle<Thing>> = {}, cause?: Cause) {
      const move = follow(lifecycle, thing, { owner: "handler", name, message, cause });
      if (!move) throw new Error(`no row for ${name}`);
      const told = { ...(lifecycle as unknown as Lifecycle<Thing>), ...more };
      changes.committed({ lifecycle: told, thing, pass: pass({ move }) });
    },
  };
}

const FAILING = 'warn failing {"kind":"lamp","id":"l1","state":"switching","reason":"no answer"}';
const RECOVERED = 'info recovered {"kind":"lamp","id":"l1","state":"switching"}';

test("tells when a thing starts failing and when it has recovered, and nothing in between", () => {
  const { lines, see } = listen();
  see(null, failing, failing, { ...failing, reason: "still no answer" }, null, null);
  expect(lines).toEqual([FAILING, RECOVERED]);
});

test("tells it once more when the thing fails again after it had recovered", () => {
  const { lines, see } = listen();
  see(failing, null, failing);
  expect(lines).toEqual([FAILING, RECOVERED, FAILING]);
});

test("a thing that fails and waits in turn is one story", () => {
  const { lines, see } = listen();
  see(waiting, failing, waiting, failing, waiting, null);
  expect(lines).toEqual([FAILING, RECOVERED]);
});

test("tells when failing turns into the need for a person", () => {
  const { lines, see } = listen();
  see(failing, { type: "needs_intervention", reason: "open the door" });
  expect(lines).toEqual([
    FAILING,
    'warn needs a person {"kind":"lamp","id":"l1","state":"switching","reason":"open the door"}',
  ]);
});

test("names the cause, where it is known", () => {
  const { lines, see, move } = listen();
  see(null, { ...failing, cause: { code: "unreachable", facts: { at: "bmc" } } });
  move(lamp(), "not_switched", "no", {}, { code: "refused_by_device" });
  expect(lines.map((line) => JSON.parse(line.slice(line.indexOf("{"))).cause)).toEqual([
    "unreachable",
    "refused_by_device",
  ]);
});

test("what another replica told is not told again", () => {
  const { lines, move } = listen();
  move(lamp({ outcome: failing }), "switched");
  expect(lines[0]).toBe(RECOVERED);
  expect(lines).toHaveLength(2);
});

test("a failure row is a warning with its cause, and no recovery", () => {
  const { lines, move } = listen();
  move(lamp({ outcome: failing }), "not_switched", "not done within 4 minutes");
  expect(lines).toEqual([
    'warn failed {"kind":"lamp","id":"l1","from":"switching","to":"error","trigger":"not_switched","operation":"power_off","request":"req-1","reason":"not done within 4 minutes"}',
  ]);
});

test("moves for a request and the end of a thing are information; how a new thing comes to rest is for debugging", () => {
  const { lines, move } = listen();
  move(lamp(), "switched");
  move(lamp({ state: { name: "error" } }), "removed");
  move(lamp({ state: { name: "new" } }), "seen");
  expect(lines).toEqual([
    'info moved {"kind":"lamp","id":"l1","from":"switching","to":"ready","trigger":"switched","operation":"power_off","request":"req-1"}',
    'info moved {"kind":"lamp","id":"l1","from":"error","to":"(gone)","trigger":"removed"}',
    'debug moved {"kind":"lamp","id":"l1","from":"new","to":"ready","trigger":"seen"}',
  ]);
});

test("of a lifecycle that is told in full, every transition is of interest, also what nobody asked for", () => {
  const { lines, move } = listen();
  const thing = lamp({ state: { name: "new" } });
  move(thing, "seen");
  move(thing, "seen", undefined, { toldInFull: true });
  expect(lines.map((line) => line.split(" ", 2).join(" "))).toEqual(["debug moved", "info moved"]);
});
