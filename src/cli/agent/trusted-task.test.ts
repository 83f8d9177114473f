import { generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, test } from "vitest";
import { trustTask } from "./trusted-task.ts";

const keys = generateKeyPairSync("ed25519");
const others = generateKeyPairSync("ed25519");
const NOW = new Date("2026-03-01T12:00:00Z");
const circumstances = {
  node: "fn-1",
  publicKey: keys.publicKey.export({ type: "spki", format: "pem" }).toString(),
  now: NOW,
  wasBegun: (id: string) => id === "ft-old",
};
const GOOD = {
  task_id: "ft-1",
  node_id: "fn-1",
  task_type: "node.drain",
  params: { grace: 5 },
  expires_at: "2026-03-01T12:05:00.000Z",
};
const offered = (task: object, { privateKey } = keys) => {
  const signed = JSON.stringify(task);
  return { signed, signature: sign(null, Buffer.from(signed), privateKey).toString("base64") };
};

test("what the server signed for this node is believed", () => {
  expect(trustTask(offered(GOOD), circumstances)).toEqual({ id: "ft-1", type: "node.drain", params: { grace: 5 } });
});

describe("a task is refused", () => {
  test.each([
    ["signed by somebody else", offered(GOOD, others)],
    ["changed on the way", { ...offered(GOOD), signed: JSON.stringify({ ...GOOD, task_type: "node.uninstall" }) }],
    ["without a signature", { ...offered(GOOD), signature: "" }],
    ["for another node", offered({ ...GOOD, node_id: "fn-2" })],
    ["that has expired", offered({ ...GOOD, expires_at: NOW.toISOString() })],
    ["that never expires", offered({ ...GOOD, expires_at: undefined })],
    ["of a type that nobody knows", offered({ ...GOOD, task_type: "node.shell" })],
    ["that was begun before", offered({ ...GOOD, task_id: "ft-old" })],
  ])("%s", (_, task) => {
    expect(trustTask(task, circumstances)).toEqual({ refused: expect.any(String) });
  });
});
