import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { nameOfRoute } from "../../../src/api/rest/route.ts";
import { createMaas } from "../../../src/providers/maas/maas-provider.ts";
import { parseApiKey } from "../../../src/providers/maas/sign-in.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { access } from "../../../src/wiring/things/all-things.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, startInstalls } from "./installs-under-test.ts";
import { faultsOfDocument, type OpenApiDocument } from "./openapi-faults.ts";
import { openReferencePage } from "./reference-page.ts";

let api: InstallsUnderTest;
let document: OpenApiDocument;
beforeAll(async () => {
  // The examples call no MAAS.
  api = await startInstalls({ maas: { ...createMaas({ gateway: createBmcGateway() }), checkKey: parseApiKey } });
  document = (await api.call<OpenApiDocument>("GET", "/api/v1/openapi.json", undefined, { as: null })).body;
});
afterAll(() => api.close());

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );

describe("the OpenAPI document", () => {
  test("is valid OpenAPI 3.1", () => {
    expect(faultsOfDocument(document)).toEqual([]);
    expect(document).toMatchObject({ openapi: "3.1.0", info: { version: "1.2.3" } });
  });

  test("is found out when it is not", () => {
    const broken = structuredClone(document) as unknown as Record<string, Record<string, Record<string, unknown>>>;
    const history = broken.paths?.["/api/v1/nodes/{id}/history"]?.get as Record<string, unknown>;
    history.parameters = [];
    history.tags = ["nowhere"];
    expect(faultsOfDocument(broken as unknown as OpenApiDocument)).toEqual([
      "GET /api/v1/nodes/{id}/history: the tag nowhere is not declared",
      "GET /api/v1/nodes/{id}/history: path parameters are , and its path says id",
    ]);
  });

  test("shows every route below /api/v1 but its own two, and says of each whether it takes credentials", () => {
    const shown = operations().map(({ path, method }) => `${method} ${path}`);
    const routes = api.routes.map(nameOfRoute).filter((name) => !/openapi\.json|docs$/.test(name));
    expect(shown.sort()).toEqual(routes.sort());
    for (const { path, method, operation } of operations())
      expect([path, operation.security]).toEqual([path, access.isPublic(`${method} ${path}`) ? [] : [{ bearer: [] }]]);
  });

  test("what is served has a row in the table of roles, and what has a row is served", () => {
    const operationsOfTheServer = ["GET /healthz", "GET /readyz", "GET /metrics", "GET /version"];
    const ofTheConsole = [
      "GET /",
      "GET /assets/{name}",
      "POST /auth/session",
      "DELETE /auth/session",
      "GET /auth/methods",
      "GET /auth/login",
      "GET /auth/callback",
    ];
    // Those that start jobs are served where there are runs, as there are none here.
    const ofJobs =
      /^POST \/api\/v1\/fleet\/(batches(\/preview)?|nodes(\/preview|\/\{node\}\/(actions|(decommission|retire)(\/preview)?))?)$/;
    const rows = access.methods.filter((name) => name.includes(" /") && !ofJobs.test(name));
    expect([...api.served, ...operationsOfTheServer, ...ofTheConsole].sort()).toEqual(rows.sort());
  });

  test("is for viewers to read: whatever changes something takes more than that, or no credentials at all", () => {
    const viewers = api.routes.filter((route) => {
      const allowed = access.allowedFor(nameOfRoute(route));
      return allowed !== "anyone" && allowed.includes("viewer");
    });
    expect(viewers.length).toBeGreaterThan(10);
    // A preview takes what its action takes, and changes nothing.
    const changing = viewers.filter(({ method, path }) => method !== "GET" && !path.endsWith("/preview"));
    expect(changing).toEqual([]);
    const open = api.routes.map(nameOfRoute).filter((name) => access.isPublic(name) && !name.startsWith("GET "));
    expect(open).toEqual([
      "POST /api/v1/report",
      "POST /api/v1/nodes/{id}/installation-status",
      "POST /api/v1/boot/steps",
      // By the single-use token in its body.
      "POST /internal/v1/nodes/{id}/enroll",
    ]);
  });

  test("has examples that are requests which succeed", async () => {
    // In an order in which each finds what it needs; the ids are those of the examples before.
    const ids: Record<string, string> = { nodes: "m-02005e100001", workflows: "ubuntu-2404", groups: "" };
    const order: readonly (readonly [operationId: string, before?: string])[] = [
      ["postWorkflows"],
      ["postGroups"],
      ["postNodes"],
      ["patchNodesId"],
      ["postNodesBulkChangeState"],
      ["patchNodesIdState", "discovered"],
      ["postReport", "installing"],
      ["postNodesIdInstallationStatus"],
      ["postNodesIdTags"],
      ["patchGroupsId"],
      ["putWorkflowsId"],
      ["postFleetSites"],
      ["patchFleetSitesSite"],
      ["putFleetSitesSiteProfilesProfile"],
      ["putFleetSitesSiteRoce"],
      ["postNodesIdConfirmErased", "deprovisioning"],
    ];
    // What agents send takes a bearer of one node, and what is done with nodes and allocations an onboarded one: test/integration/fleet
    // sends the like.
    const withExamples = operations().filter(
      ({ path, operation }) =>
        exampleOf(operation) !== undefined && !/^\/internal\/|^\/api\/v1\/fleet\/(nodes|allocations)/.test(path),
    );
    expect(order.map(([id]) => id).sort()).toEqual(withExamples.map(({ operation }) => operation.operationId).sort());
    for (const [operationId, before] of order) {
      const found = withExamples.find(({ operation }) => operation.operationId === operationId);
      if (!found) throw new Error(operationId);
      if (before !== undefined) await api.place(ids.nodes ?? "", before);
      const path = found.path
        .replace("{id}", ids[found.path.split("/")[3] ?? ""] ?? "")
        .replace("{site}", "lab")
        .replace("{profile}", "h100");
      const answer = await api.call<{ data: { id?: string } }>(found.method, path, exampleOf(found.operation));
      expect(answer.status, `${operationId}: ${answer.text}`).toBeLessThan(300);
      if (operationId === "postGroups") ids.groups = answer.body.data.id ?? "";
    }
  });
});

const exampleOf = (operation: OpenApiDocument["paths"][string][string]): unknown =>
  operation.requestBody?.content["application/json"]?.example;

describe("/api/v1/docs", () => {
  test("is one page that runs its own script and style, asks its own server, and nothing else", async () => {
    const { status, headers, text } = await api.call("GET", "/api/v1/docs", undefined, { as: null });
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    const digestOf = (tag: string) => {
      const [, inside = ""] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(text) ?? [];
      return `'sha256-${createHash("sha256").update(inside).digest("base64")}'`;
    };
    expect(headers.get("content-security-policy")?.split("; ")).toEqual([
      "default-src 'none'",
      `script-src ${digestOf("script")}`,
      `style-src ${digestOf("style")}`,
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
    // What the policy would refuse must not be in it, and there is one script and one style.
    expect(text).not.toMatch(/\s(src|style|on[a-z]+)=|https?:\/\/|<link|@import|url\(|innerHTML|eval\(/);
    expect([...text.matchAll(/<(script|style)\b/g)].map(([, tag]) => tag)).toEqual(["style", "script"]);
  });

  test("shows each operation with its parameters, its body, its example and a line of curl, and finds them", async () => {
    const page = await openReferencePage((await api.call("GET", "/api/v1/docs")).text, document);
    const boxes = page.operations();
    expect(boxes.map(({ id }) => id).sort()).toEqual(
      operations()
        .map(({ operation }) => operation.operationId)
        .sort(),
    );
    const shown = page.textOf("patchNodesIdState");
    for (const part of ["PATCH", "/api/v1/nodes/{id}/state", "force", "boolean", "racked and cabled", "422"])
      expect(shown).toContain(part);
    expect(shown).toContain(
      `curl -s -X PATCH -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -d '{"state":"pending","comment":"racked and cabled"}' 'http://millwright/api/v1/nodes/m-02005e100001/state'`,
    );
    page.search("stalled");
    expect(
      page
        .operations()
        .filter(({ hidden }) => !hidden)
        .map(({ id }) => id),
    ).toEqual(["getNodesStalled"]);
    page.search("");
    expect(page.operations().every(({ hidden }) => !hidden)).toBe(true);
  });
});
