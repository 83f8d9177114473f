import { expect, test } from "vitest";
import { HeardScript } from "../model/heard-script.ts";
import { createRunLog } from "./run-log.ts";

const clock = { now: () => new Date(0), monotonic: () => 0 };

test("what we say is a line; what a script wrote stays as it wrote it", () => {
  const log = createRunLog("run-1", clock, new HeardScript(null));
  log.say("step one begins");
  log.say("already a line\n");
  log.say(Buffer.from("Progress: 10%"));
  log.say(Buffer.from(" 20%\n"), "stderr");
  const [effect] = log.effects("one");
  expect(effect).toMatchObject({ type: "log", id: "run-1" });
  expect(effect?.type === "log" ? effect.lines.map(({ text }) => Buffer.from(text).toString()) : []).toEqual([
    "step one begins\n",
    "already a line\n",
    "Progress: 10%",
    " 20%\n",
  ]);
});

test("what is learnt of another thing is written with what is said", () => {
  const log = createRunLog("run-1", clock, new HeardScript(null));
  expect(log.effects("one")).toEqual([]);
  log.learn("machine", "m-1", { sshMoved: null });
  expect(log.effects("one")).toEqual([
    { type: "observe", kind: "machine", id: "m-1", facts: { sshMoved: null }, observed: [] },
  ]);
});
