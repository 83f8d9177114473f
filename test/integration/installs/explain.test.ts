import { expect, test } from "vitest";
import { explain } from "../../../src/services/explain/explain.ts";
import { allThings, explainersOf } from "../../../src/wiring/things/all-things.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, startInstalls } from "./installs-under-test.ts";

let api: InstallsUnderTest;
beforeAll(async () => {
  api = await startInstalls();
  const boot = { method: "chain", chain_url: "/files/a" };
  for (const [id, bootMode] of [
    ["ubuntu", "any"],
    ["for-uefi", "uefi"],
    ["gone", "any"],
  ])
    await api.ask("POST", "/api/v1/workflows", { id, name: id, boot_mode: bootMode, boot });
});
afterAll(() => api.close());

/** What `explain` says of a node that was put into a state: what it waits for, and the first command that helps. */
async function explained(state: string, workflow: string | null) {
  const { id } = await api.register();
  await api.ask("PATCH", `/api/v1/nodes/${id}`, { workflow_id: workflow });
  if (workflow === "gone") await api.ask("DELETE", "/api/v1/workflows/gone");
  await api.place(id, state);
  const { waitingFor, nextCommands } = await explain(
    { ...api.deps, explainers: explainersOf(allThings) },
    { kind: "install", id },
  );
  return { waitsFor: waitingFor.at(-1), first: nextCommands[0]?.command.replace(id, "ID") };
}

test.each([
  ["discovered", null, "a person who approves it", "millwright node approve ID --workflow <id>"],
  ["pending", null, "a workflow: none is assigned", "millwright node set ID --workflow <id>"],
  ["pending", "gone", "gone is not offered any more", "millwright node set ID --workflow <id>"],
  ["pending", "for-uefi", "for uefi", "millwright node set ID --workflow <id>"],
  ["pending", "ubuntu", "the machine to boot from the network", "millwright node show ID"],
  ["install_failed", "ubuntu", "a person who retries it", "millwright node retry ID --workflow <id> --force"],
  ["installed", "ubuntu", "a person who verifies it", "millwright node activate ID"],
  ["reprovision", "ubuntu", "a person who lets it install", "millwright node requeue ID"],
] as const)(
  "a node that is %s with workflow %s waits for %s, and `%s` helps",
  async (state, workflow, waits, first) => {
    expect(await explained(state, workflow)).toEqual({ waitsFor: expect.stringContaining(waits), first });
  },
);
