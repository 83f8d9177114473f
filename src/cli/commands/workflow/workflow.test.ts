import { afterEach, beforeEach, expect, test } from "vitest";
import { type FakeRest, startFakeRest } from "../../../../test/support/cli/fake-rest.ts";

let rest: FakeRest;
beforeEach(async () => {
  rest = await startFakeRest();
});
afterEach(() => rest.close());

const FILE = `id: ubuntu-2404
name: Ubuntu 24.04
boot:
  method: kernel
  kernel_url: /files/vmlinuz
steps:
  - {sequence: 1, name: partition, type: partition}
`;
const WORKFLOW = {
  id: "ubuntu-2404",
  name: "Ubuntu 24.04",
  description: "",
  os_family: "linux",
  architecture: "x86_64",
  boot_mode: "any",
  boot: { method: "kernel", kernel_url: "/files/vmlinuz", cmdline: "" },
  steps: [
    {
      sequence: 1,
      name: "partition",
      type: "partition",
      config: {},
      timeout_seconds: 300,
      on_failure: "fail",
      max_retries: 0,
      retry_delay_seconds: 30,
      next_state: null,
    },
  ],
  next_state: "installed",
  created_at: "2026-01-21T10:00:00Z",
  updated_at: "2026-01-21T10:00:00Z",
};
const one = (data: object) => ({ success: true, data, message: null });

test("a workflow is created from YAML, listed, shown and deleted", async () => {
  rest.answers.set("POST /api/v1/workflows", one(WORKFLOW));
  rest.answers.set("GET /api/v1/workflows", { success: true, data: [WORKFLOW], total: 1 });
  rest.answers.set("GET /api/v1/workflows/ubuntu-2404", one(WORKFLOW));
  rest.answers.set("DELETE /api/v1/workflows/ubuntu-2404", { success: true, data: null, message: null });
  expect((await rest.run("workflow create -f -", { stdin: FILE })).out).toBe("Workflow ubuntu-2404 created.\n");
  expect(rest.calls[0]?.body).toEqual({
    id: "ubuntu-2404",
    name: "Ubuntu 24.04",
    boot: { method: "kernel", kernel_url: "/files/vmlinuz" },
    steps: [{ sequence: 1, name: "partition", type: "partition" }],
  });
  expect((await rest.run("workflow list --os-family linux")).out).toMatch(
    /ubuntu-2404 +Ubuntu 24.04 +linux +x86_64 +any +kernel +installed/,
  );
  expect(rest.calls.at(-1)?.path).toBe("/api/v1/workflows?os_family=linux&limit=1000&offset=0");
  expect((await rest.run("workflow show ubuntu-2404")).out).toMatch(
    /kernel_url: +\/files\/vmlinuz[\s\S]*1 +partition +partition +300s +0 +fail/,
  );
  expect((await rest.run("workflow delete ubuntu-2404 --yes")).out).toBe("Workflow ubuntu-2404 deleted.\n");
});

test("what `show -o yaml` prints can be created again, and replaces its own workflow only", async () => {
  rest.answers.set("GET /api/v1/workflows/ubuntu-2404", one(WORKFLOW));
  rest.answers.set("POST /api/v1/workflows", one(WORKFLOW));
  rest.answers.set("PUT /api/v1/workflows/ubuntu-2404", one(WORKFLOW));
  const { out: stdin } = await rest.run("workflow show ubuntu-2404 -o yaml");
  const { created_at: _, updated_at: __, ...said } = WORKFLOW;
  await rest.run("workflow create -f -", { stdin });
  expect(rest.calls.at(-1)?.body).toEqual(said);
  await rest.run("workflow replace ubuntu-2404 -f -", { stdin });
  expect(rest.calls.at(-1)).toMatchObject({ method: "PUT", body: expect.not.objectContaining({ id: "ubuntu-2404" }) });
  const other = await rest.run("workflow replace debian -f -", { stdin });
  expect(other.code).toBe(2);
  expect(other.err).toContain("it is of ubuntu-2404, and debian is to be replaced");
});

test("a file that holds no workflow is refused before the server is asked", async () => {
  for (const stdin of ["- a\n- b\n", "just text", "{broken"])
    expect((await rest.run("workflow create -f -", { stdin })).code).toBe(2);
  expect((await rest.run("workflow create -f /nowhere")).code).toBe(2);
  expect(rest.calls).toEqual([]);
});
