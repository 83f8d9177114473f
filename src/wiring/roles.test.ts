import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import type { DescService } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createAccess } from "../api/auth/access.ts";
import type { AppError } from "../kernel/errors.ts";
import type { Caller } from "../services/call/caller.ts";
import { expandRoles, ROLES } from "../services/call/roles.ts";
import { access } from "./things/all-things.ts";

const CONTRACT = new URL("../../contract/", import.meta.url);

async function contractMethods(): Promise<string[]> {
  const files = readdirSync(fileURLToPath(CONTRACT), { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith("_pb.js"),
  );
  const modules = await Promise.all(
    files.map((file) => import(new URL(file, CONTRACT).href) as Promise<Record<string, unknown>>),
  );
  const isService = (value: unknown): value is DescService =>
    typeof value === "object" && value !== null && "kind" in value && value.kind === "service";
  return modules
    .flatMap((module) => Object.values(module).filter(isService))
    .flatMap((service) => service.methods.map((method) => `${service.typeName}/${method.name}`));
}

const callerWith = (...roles: string[]): Caller => ({ name: "pat", roles, address: null });
const may = (method: string, ...roles: string[]) => {
  try {
    access.authorize(callerWith(...roles), method);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ kind: "permission_denied" });
    return false;
  }
};

describe("the table of methods and roles", () => {
  test("has a row for every method of every contract, and none for methods that do not exist", async () => {
    const methods = await contractMethods();
    expect(methods).toContain("forge.Forge/SetPowerShelfMaintenance");
    expect(access.methods.filter((key) => !key.includes(" ")).sort()).toEqual([...methods].sort());
  });

  test("names only fields that the requests of their methods have", async () => {
    const { RackService } = await import("../../contract/millwright/v1/rack_pb.js");
    const { SwitchService } = await import("../../contract/millwright/v1/switch_pb.js");
    const withFields = [
      { method: RackService.method.startRackMaintenance, fields: ["include_assigned"] },
      { method: RackService.method.previewRackMaintenance, fields: ["include_assigned"] },
      { method: SwitchService.method.acceptSwitchCertificate, fields: ["os"] },
    ];
    const rows = withFields.map(({ method, fields }) => ({ key: `${method.parent.typeName}/${method.name}`, fields }));
    const seen = access.methods.map((key) => ({ key, fields: access.fieldsOf(key) }));
    const sorted = (all: readonly { readonly key: string }[]) => all.toSorted((a, b) => a.key.localeCompare(b.key));
    expect(sorted(seen.filter(({ fields }) => fields.length > 0))).toEqual(sorted(rows));
    for (const { method, fields } of withFields)
      expect(method.input.fields.map(({ name }) => name)).toEqual(expect.arrayContaining(fields));
  });

  test("keeps fields that override a safeguard to administrators", () => {
    const fields = access.methods.filter((key) => /\/\S+ /.test(key));
    expect(fields.length).toBeGreaterThan(0);
    for (const field of fields) expect([field, ROLES.filter((role) => may(field, role))]).toEqual([field, ["admin"]]);
  });

  test("lets an administrator call everything but what takes the agent of the very node", () => {
    const others = access.methods.filter((method) => !may(method, "admin"));
    expect(others.filter((method) => !isDeepStrictEqual(access.allowedFor(method), ["agent"]))).toEqual([]);
    expect(others.every((method) => method.includes(" /internal/v1/nodes/{id}/"))).toBe(true);
  });

  test("gives the principals of forge.Forge what its specification says, and nothing that it does not", () => {
    const rows = {
      SetPowerShelfMaintenance: ["Machineatron", "Flow"],
      FindPowerShelves: ["Machineatron", "Flow"],
      FindPowerShelfIds: ["Machineatron", "Flow"],
      FindPowerShelvesByIds: ["Machineatron", "Flow"],
      FindPowerShelfStateHistories: ["Machineatron", "Flow"],
      DeletePowerShelf: ["Machineatron"],
      AdminForceDeletePowerShelf: ["Machineatron"],
      InsertPowerShelfHealthReport: ["Health"],
      ListPowerShelfHealthReports: ["Health"],
      RemovePowerShelfHealthReport: ["Health"],
      UpdatePowerShelfMetadata: ["SiteAgent"],
      AddExpectedPowerShelf: ["Machineatron", "SiteAgent", "Flow"],
      UpdateExpectedPowerShelf: ["Machineatron", "SiteAgent"],
      DeleteExpectedPowerShelf: ["Machineatron", "SiteAgent"],
      ReplaceAllExpectedPowerShelves: ["Machineatron", "SiteAgent"],
      DeleteAllExpectedPowerShelves: ["Machineatron", "SiteAgent"],
    };
    const principals = ["Machineatron", "SiteAgent", "Health", "Flow"];
    for (const [method, allowed] of Object.entries(rows)) {
      const key = `forge.Forge/${method}`;
      expect([method, principals.filter((principal) => may(key, principal))]).toEqual([method, allowed]);
      expect(may(key, "ForgeAdminCLI")).toBe(true);
    }
  });

  test("lets a viewer read and change nothing", () => {
    const changes =
      /\/(Set|Delete|Admin|Insert|Remove|Update|Add|Replace|Create|Refresh|Revoke|Register|Start|Cancel|Accept|Enter|Exit|Return|Retire|Retry|Resume|Rerun|Mark|Put|Adopt|Restart|Follow|Force)/;
    expect(access.methods.filter((method) => changes.test(method) && may(method, "viewer"))).toEqual([
      "millwright.v1.SavedViewService/DeleteSavedView", // of one's own
    ]);
    expect(may("millwright.v1.PowerShelfService/ListPowerShelves", "viewer")).toBe(true);
  });

  test.each([
    "TokenService/CreateToken",
    "MachineLifecycleService/RetireMachine",
    "PlanCatalogService/DeletePlan",
    "ClusterService/CreateCluster",
    "ClusterService/DeleteCluster",
    "ImageService/CreateImage",
    "ImageService/DeleteImage",
  ])("keeps %s to administrators", (method) => {
    expect(ROLES.filter((role) => may(`millwright.v1.${method}`, role))).toEqual(["admin"]);
  });
});

test("what is installed is said by administrators alone, as an image or as a workflow", () => {
  const saying = ["millwright.v1.ImageService/CreateImage", "millwright.v1.ImageService/DeleteImage"];
  const byWorkflow = ["POST /api/v1/workflows", "PUT /api/v1/workflows/{id}", "DELETE /api/v1/workflows/{id}"];
  for (const key of [...saying, ...byWorkflow]) expect(ROLES.filter((role) => may(key, role))).toEqual(["admin"]);
});

describe("roles of one purpose", () => {
  const allOf = (role: string) =>
    access.methods.filter((method) => access.allowedFor(method) !== "anyone" && may(method, role));

  test("an auditor reads the record and the holders of tokens, and nothing else", () => {
    const everybody = ["millwright.v1.LifecycleService/ListLifecycles", "millwright.v1.LifecycleService/GetLifecycle"];
    expect(allOf("auditor").sort()).toEqual(
      [
        ...everybody,
        "millwright.v1.SystemService/GetSystem",
        "millwright.v1.AccessService/GetMyAccess",
        "millwright.v1.AccessService/CanI",
        "millwright.v1.OverviewService/DescribeList",
        "millwright.v1.SavedViewService/ListSavedViews",
        "millwright.v1.SavedViewService/SaveView",
        "millwright.v1.SavedViewService/DeleteSavedView",
        "millwright.v1.HistoryService/ListHistory",
        "millwright.v1.HistoryService/GetReport",
        "millwright.v1.HistoryService/ListEvents",
        "millwright.v1.HistoryService/CountEvents",
        "millwright.v1.HistoryService/GetEventCursor",
        "millwright.v1.TokenService/ListTokens",
        "millwright.v1.SessionService/ListSessions",
        "millwright.v1.AuditService/ListRefusedCalls",
        "GET /api/v1/audit/refused-calls",
        "millwright.v1.AuditService/VerifyJournal",
        "millwright.v1.AuditService/ExportJournal",
      ].sort(),
    );
  });

  test("who sets credentials can neither read nor command devices", () => {
    const own = allOf("credentials").filter(
      (method) =>
        !/LifecycleService\/(List|Get)|GetSystem|\.AccessService|\.SavedViewService|DescribeList/.test(method),
    );
    expect(own).toContain("millwright.v1.MachineLifecycleService/SetMachineCredentials");
    expect(own.filter((method) => !/\/Set\w+Credentials$/.test(method))).toEqual([]);
    expect(may("millwright.v1.MachineLifecycleService/SetMachineCredentials", "operator")).toBe(false);
  });
});

describe("authorisation", () => {
  test("denies methods without a row to everybody, whatever their name", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.constantFrom("constructor", "__proto__", "toString", "forge.Forge/NoSuchMethod")),
        (method) => {
          fc.pre(!access.methods.includes(method));
          expect(access.allowedFor(method)).toEqual([]);
          expect(may(method, ...ROLES)).toBe(false);
        },
      ),
    );
  });

  test("refuses tables that have two rows for one method", () => {
    const tables = [{ "GET /a": ["viewer"] }, { "GET /b": ["viewer"] }, { "GET /a": "anyone" }] as const;
    expect(() => createAccess(tables.map((roles) => ({ group: null, roles })))).toThrow("GET /a has two rows");
  });

  test("ignores words that are no roles", () => {
    expect(may("GET /metrics", "root", "Admin", "constructor")).toBe(false);
    expect([...expandRoles(["root", "viewer", "viewer"])]).toEqual(["viewer"]);
  });

  test("says who was denied what, and which roles would do", () => {
    try {
      access.authorize(callerWith("viewer"), "forge.Forge/AdminForceDeletePowerShelf");
      expect.unreachable();
    } catch (error) {
      expect((error as AppError).message).toBe(
        "'pat' (role viewer) may not call forge.Forge/AdminForceDeletePowerShelf; it requires one of admin, ForgeAdminCLI, Machineatron",
      );
    }
    expect(() => access.authorize({ name: null, roles: [], address: null }, "GET /metrics")).toThrow(
      "the caller (no role) may not call",
    );
  });

  test("an administrator carries all that an operator and a viewer have", () => {
    const carried = ["ForgeAdminCLI", "admin", "auditor", "credentials", "operator", "viewer"];
    expect([...expandRoles(["admin"])].sort()).toEqual(carried);
  });
});
