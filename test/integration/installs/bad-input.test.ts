import { describe, expect, test } from "vitest";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { dumpTables } from "../api/forge-under-test.ts";
import { type InstallsUnderTest, type Node, startInstalls } from "./installs-under-test.ts";

let api: InstallsUnderTest;
let node: Node;
let groupId: string;
beforeAll(async () => {
  api = await startInstalls();
  node = await api.register();
  await api.ask("POST", "/api/v1/workflows", { id: "w1", name: "one", boot: BOOT });
  groupId = (await api.ask<{ id: string }>("POST", "/api/v1/groups", { name: "taken" })).id;
});
afterAll(() => api.close());

const BOOT = { method: "kernel", kernel_url: "/files/vmlinuz" };
const MAC = "02:00:00:00:00:01";
const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const withConfig = (config: string) =>
  `{"name":"deep","boot":{"method":"chain","chain_url":"/a"},"steps":[{"sequence":1,"name":"a","type":"wait","config":{"a":${config}}}]}`;

interface Case {
  readonly what: string;
  /** `{id}` is the node, `{group}` the group. */
  readonly call: readonly [method: string, path: string, body?: unknown];
  readonly raw?: string;
  readonly type?: string;
  readonly status: number;
  /** Of the first problem. */
  readonly loc?: readonly (string | number)[];
}
const report = (what: string, body: object, loc: readonly string[]): Case => ({
  what,
  call: ["POST", "/api/v1/report", { mac_address: MAC, ...body }],
  status: 422,
  loc,
});
const raw = (what: string, text: string, status: number, type = "application/json"): Case => ({
  what,
  call: ["POST", "/api/v1/workflows"],
  raw: text,
  type,
  status,
});
const text = (what: string, call: Case["call"], loc: Case["loc"], status = 422): Case => ({
  what,
  call,
  status,
  ...(loc && { loc }),
});

const CASES: readonly Case[] = [
  report("a MAC address that is none", { mac_address: "no-mac" }, ["body", "mac_address"]),
  report("a MAC address of seven pairs", { mac_address: "02:00:00:00:00:00:01" }, ["body", "mac_address"]),
  report("a MAC address that is a number", { mac_address: 2 }, ["body", "mac_address"]),
  report("a report without one", { mac_address: undefined }, ["body", "mac_address"]),
  report("progress 101", { installation_status: "progress", installation_progress: 101 }, [
    "body",
    "installation_progress",
  ]),
  report("progress -1", { installation_progress: -1 }, ["body", "installation_progress"]),
  report("progress 1.5", { installation_progress: 1.5 }, ["body", "installation_progress"]),
  report("progress as text", { installation_progress: "40" }, ["body", "installation_progress"]),
  report("a status that is none", { installation_status: "asleep" }, ["body", "installation_status"]),
  report("an event that is none", { event: "party" }, ["body", "event"]),
  report("NUL in a hostname", { hostname: "a\0b" }, ["body", "hostname"]),
  report("half of a surrogate pair in an error", { installation_error: "\ud800" }, ["body", "installation_error"]),
  report("a hostname of 256 characters", { hostname: "h".repeat(256) }, ["body", "hostname"]),
  report("an empty report_id", { report_id: "" }, ["body", "report_id"]),
  text("NUL in a name that nobody knows", ["POST", "/api/v1/report", { mac_address: MAC, "a\0": 1 }], ["body"]),
  text("a node without a MAC address", ["POST", "/api/v1/nodes", {}], ["body", "mac_address"]),
  text(
    "a node with a field that nobody knows",
    ["POST", "/api/v1/nodes", { mac_address: MAC, colour: "red" }],
    ["body"],
  ),
  text(
    "an architecture that nobody knows",
    ["POST", "/api/v1/nodes", { mac_address: MAC, arch: "vax" }],
    ["body", "arch"],
  ),
  text(
    "a boot mode that nobody knows",
    ["POST", "/api/v1/nodes", { mac_address: MAC, boot_mode: "pi" }],
    ["body", "boot_mode"],
  ),
  text(
    "a control character in a hostname",
    ["PATCH", "/api/v1/nodes/{id}", { hostname: "a\u001b[2J" }],
    ["body", "hostname"],
  ),
  text("a workflow that is a number", ["PATCH", "/api/v1/nodes/{id}", { workflow_id: 7 }], ["body", "workflow_id"]),
  text("NUL in a workflow's id", ["PATCH", "/api/v1/nodes/{id}", { workflow_id: "\0" }], ["body", "workflow_id"]),
  text("a list for a body", ["PATCH", "/api/v1/nodes/{id}", []], ["body"]),
  text("null for a body", ["PATCH", "/api/v1/nodes/{id}", null], ["body"]),
  text("a state that nobody knows", ["PATCH", "/api/v1/nodes/{id}/state", { state: "asleep" }], ["body", "state"]),
  text("no state", ["PATCH", "/api/v1/nodes/{id}/state", { force: true }], ["body", "state"]),
  text("force as text", ["PATCH", "/api/v1/nodes/{id}/state", { state: "pending", force: "yes" }], ["body", "force"]),
  text(
    "a comment that forges lines",
    ["PATCH", "/api/v1/nodes/{id}/state", { state: "pending", comment: "a\nb" }],
    ["body", "comment"],
  ),
  text(
    "a comment of 1,025 characters",
    ["PATCH", "/api/v1/nodes/{id}/state", { state: "pending", comment: "c".repeat(1_025) }],
    ["body", "comment"],
  ),
  text("an illegal transition", ["PATCH", "/api/v1/nodes/{id}/state", { state: "active" }], undefined, 400),
  text("limit=0", ["GET", "/api/v1/nodes/{id}/history?limit=0"], ["query", "limit"]),
  text("limit=201", ["GET", "/api/v1/nodes/{id}/history?limit=201"], ["query", "limit"]),
  text("limit=many", ["GET", "/api/v1/nodes/{id}/history?limit=many"], ["query", "limit"]),
  text("two limits", ["GET", "/api/v1/nodes/{id}/history?limit=1&limit=2"], ["query", "limit"]),
  text("offset=-1", ["GET", "/api/v1/nodes/{id}/history?offset=-1"], ["query", "offset"]),
  text("an offset beyond all numbers", ["GET", "/api/v1/nodes/{id}/history?offset=1e300"], ["query", "offset"]),
  text("a parameter that nobody knows", ["GET", "/api/v1/nodes/{id}/history?page=2"], ["query"]),
  text("limit=501 of events", ["GET", "/api/v1/nodes/{id}/events?limit=501"], ["query", "limit"]),
  text("limit=1001 of nodes", ["GET", "/api/v1/nodes?limit=1001"], ["query", "limit"]),
  text("a state to list that is none", ["GET", "/api/v1/nodes?state=asleep"], ["query", "state"]),
  text("NUL in a group to list", ["GET", "/api/v1/nodes?group_id=%00"], ["query", "group_id"]),
  text("NUL in an id", ["GET", "/api/v1/nodes/%00"], ["path", "id"]),
  text("an id with odd characters", ["GET", "/api/v1/nodes/..%2F..%2Fetc%2Fpasswd"], undefined, 404),
  text(
    "an id in another script",
    ["GET", `/api/v1/nodes/${encodeURIComponent("née'; drop table installs; --")}`],
    undefined,
    404,
  ),
  text("an id longer than any", ["GET", `/api/v1/nodes/${"x".repeat(99)}`], undefined, 404),
  text("a tag with a space", ["POST", "/api/v1/nodes/{id}/tags", { tag: "a b" }], ["body", "tag"]),
  text("an empty tag", ["POST", "/api/v1/nodes/{id}/tags", { tag: "" }], ["body", "tag"]),
  text("a tag of 51 characters", ["POST", "/api/v1/nodes/{id}/tags", { tag: "t".repeat(51) }], ["body", "tag"]),
  text(
    "no nodes at once",
    ["POST", "/api/v1/nodes/bulk/change-state", { node_ids: [], new_state: "pending" }],
    ["body", "node_ids"],
  ),
  text(
    "an id at once that is a number",
    ["POST", "/api/v1/nodes/bulk/change-state", { node_ids: [MAC, 7], new_state: "pending" }],
    ["body", "node_ids", 1],
  ),
  text("a group without a name", ["POST", "/api/v1/groups", { name: "  " }], ["body", "name"]),
  text(
    "a group with a name of 101 characters",
    ["POST", "/api/v1/groups", { name: "g".repeat(101) }],
    ["body", "name"],
  ),
  text("a group whose name is taken", ["POST", "/api/v1/groups", { name: "taken" }], undefined, 409),
  text("a group below itself", ["PATCH", "/api/v1/groups/{group}", { parent_id: "{group}" }], undefined, 400),
  text(
    "auto_provision as text",
    ["PATCH", "/api/v1/groups/{group}", { auto_provision: "yes" }],
    ["body", "auto_provision"],
  ),
  text("root_only=perhaps", ["GET", "/api/v1/groups?root_only=perhaps"], ["query", "root_only"]),
  text("a workflow without a way to boot", ["POST", "/api/v1/workflows", { name: "x" }], ["body", "boot"]),
  text(
    "a way to boot that nobody knows",
    ["POST", "/api/v1/workflows", { name: "x", boot: { method: "magic" } }],
    ["body", "boot", "method"],
  ),
  text("an id that goes up", ["POST", "/api/v1/workflows", { id: "../x", name: "x", boot: BOOT }], ["body", "id"]),
  text(
    "a step without a sequence",
    ["POST", "/api/v1/workflows", { name: "x", boot: BOOT, steps: [{ name: "a", type: "wait" }] }],
    ["body", "steps", 0, "sequence"],
  ),
  text("a boot without a MAC address", ["GET", "/api/v1/boot"], ["query", "mac"]),
  text("a boot with a MAC address that is none", ["GET", "/api/v1/boot?mac=zz"], undefined, 400),
  text("a boot with the MAC address of everybody", ["GET", "/api/v1/boot?mac=ff:ff:ff:ff:ff:ff"], undefined, 400),
  raw("no JSON", "{not json", 422),
  raw("no body", "", 422),
  raw("a body that changes what objects are", '{"__proto__":{"admin":true}}', 422),
  raw("JSON that is nested 100,000 deep", deep(100_000), 422),
  raw("the same where any JSON is allowed", withConfig(deep(100_000)), 422),
  raw("JSON that is nested 40 deep where any is allowed", withConfig(deep(40)), 422),
  raw("a body above 1 MiB", JSON.stringify({ name: "x".repeat(1024 * 1024) }), 413),
  raw("XML", "<a/>", 415, "application/xml"),
  raw("text", "{}", 415, "text/plain"),
  raw("a form", "name=x", 415, "application/x-www-form-urlencoded"),
];

describe("bad input gets its code and changes nothing", () => {
  test.each(CASES)("$what", async ({ call: [method, path, body], raw: sent, type, status, loc }) => {
    const before = await dumpTables(api.db);
    const filled = (part: string) => part.replace("{id}", node.id).replace("{group}", groupId);
    const answer = await api.call(
      method,
      filled(path),
      body === undefined ? undefined : JSON.parse(filled(JSON.stringify(body))),
      {
        ...(sent !== undefined && { raw: sent, headers: { "content-type": type ?? "" } }),
      },
    );
    expect(answer, answer.text).toMatchObject({ status });
    if (loc) {
      const { detail } = answer.body as { detail: { loc: unknown[] }[] };
      expect(detail[0]?.loc.slice(0, loc.length)).toEqual(loc);
    }
    expect(await dumpTables(api.db)).toEqual(before);
  });

  test("what does not exist is 404, and a method that a path does not take is 405 and says which it takes", async () => {
    for (const path of ["/api/v1/nothing", "/api/v1", `/api/v1/nodes/${"x".repeat(300)}`])
      expect(await api.call("GET", path)).toMatchObject({ status: 404, body: { detail: expect.any(String) } });
    const answer = await api.call("PUT", `/api/v1/nodes/${node.id}`, {});
    expect(answer).toMatchObject({ status: 405, body: { detail: expect.stringContaining("GET, PATCH, DELETE") } });
    expect(answer.headers.get("allow")).toBe("GET, PATCH, DELETE");
  });

  test("a path that cannot be decoded is the caller's mistake", async () => {
    const { status } = await fetch(`${api.url}/api/v1/nodes/%zz`, { headers: { "x-user": "kim", "x-role": "admin" } });
    expect(status).toBe(400);
  });
});
