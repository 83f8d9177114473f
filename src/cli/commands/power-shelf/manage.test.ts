import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  Forge,
  type InsertPowerShelfHealthReportRequest,
  type PowerShelfMetadataUpdateRequest,
} from "../../../../contract/forge/forge_pb.js";
import { HealthReportApplyMode, MetadataSchema } from "../../../../contract/forge/shared_pb.js";
import { HealthReportService } from "../../../../contract/millwright/v1/health_report_pb.js";
import {
  type CreatePowerShelfRequest,
  PowerShelfService,
  TlsTrustMode,
} from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { noted, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

describe("create", () => {
  const line =
    "ps create --bmc-endpoint 10.0.0.7:8443 --bmc-mac 02:00:5e:10:00:01 --bmc-username root --rack r1 --tls-trust ca --request-id q";
  const attempt = async (extra: string, options = {}) => {
    const sent: CreatePowerShelfRequest[] = [];
    const result = await runAgainst(
      (router) =>
        router.service(PowerShelfService, {
          createPowerShelf: (request) => {
            sent.push(request);
            return { powerShelf: { id: "new", state: "initializing" } };
          },
        }),
      `${line} ${extra}`,
      options,
    );
    return { ...result, sent };
  };

  test("sends what was given, the password from standard input", async () => {
    const { sent, out, code } = await attempt("--bmc-password-stdin", { stdin: "hunter2\n" });
    expect(code).toBe(0);
    expect(out).toBe("Power shelf new created; it is initializing.\n");
    expect(sent[0]).toMatchObject({
      bmcEndpoint: "10.0.0.7:8443",
      bmcMac: "02:00:5e:10:00:01",
      bmcUsername: "root",
      bmcPassword: "hunter2",
      rackId: "r1",
      tlsTrust: TlsTrustMode.CA,
      requestId: "q",
    });
  });

  test("takes the password from the environment or asks for it on a terminal", async () => {
    expect((await attempt("", { env: { MILLWRIGHT_BMC_PASSWORD: "from-env" } })).sent[0]?.bmcPassword).toBe("from-env");
    const asked = await attempt("", { isTTY: true, answer: "typed" });
    expect(asked.sent[0]?.bmcPassword).toBe("typed");
    expect(asked.err).toBe("BMC password: ");
  });

  test("without a password nothing is sent", async () => {
    const { code, sent, err } = await attempt("");
    expect({ code, sent }).toEqual({ code: 2, sent: [] });
    expect(err).toContain("--bmc-password-file");
  });

  test("there is no option that takes the password itself", async () => {
    const { code, err } = await attempt("--bmc-password hunter2");
    expect(code).toBe(2);
    expect(err).toContain("unknown option '--bmc-password'");
  });
});

describe("set-credentials", () => {
  const attempt = async (extra: string, options = {}) => {
    const sent: unknown[] = [];
    const result = await runAgainst(
      (router) =>
        router.service(PowerShelfService, {
          setPowerShelfCredentials: ({ id, bmcUsername, bmcPassword }) => noted(sent, { id, bmcUsername, bmcPassword }),
        }),
      `ps set-credentials s --bmc-username admin ${extra}`,
      options,
    );
    return { ...result, sent };
  };

  test("sends user name and password, which it reads and never repeats", async () => {
    const { sent, out, code } = await attempt("--bmc-password-stdin", { stdin: "hunter2\n" });
    expect({ code, sent }).toEqual({ code: 0, sent: [{ id: "s", bmcUsername: "admin", bmcPassword: "hunter2" }] });
    expect(out).toBe("Credentials of power shelf s set; they will be tried now.\n");
  });

  test("sends nothing without a password", async () => {
    expect(await attempt("")).toMatchObject({ code: 2, sent: [] });
  });
});

test("log shows what the device itself has noted, the newest last", async () => {
  const routes = (router: Parameters<Parameters<typeof runAgainst>[0]>[0]) => {
    router.service(PowerShelfService, {
      getPowerShelf: ({ id }) => ({
        powerShelf: { id },
        logEntries:
          id === "s"
            ? [
                { id: "2", severity: "critical", message: "fan stopped" },
                { id: "1", severity: "ok", message: "fan started" },
              ]
            : [],
      }),
    });
  };
  const { out } = await runAgainst(routes, "ps log s");
  expect(out).toMatch(/SEVERITY +ID +MESSAGE.*ok +1 +fan started.*critical +2 +fan stopped/s);
  expect(JSON.parse((await runAgainst(routes, "ps log s -o json")).out)).toMatchObject([{ id: "1" }, { id: "2" }]);
  expect((await runAgainst(routes, "ps log t")).err).toContain("empty");
});

test("delete, force-delete and refresh name their shelf", async () => {
  const calls: unknown[] = [];
  const routes = (router: Parameters<Parameters<typeof runAgainst>[0]>[0]) => {
    router.service(Forge, {
      deletePowerShelf: ({ id }) => noted(calls, ["delete", id?.id]),
      adminForceDeletePowerShelf: ({ powerShelfId, deleteInterfaces }) => {
        calls.push(["force", powerShelfId?.id, deleteInterfaces]);
        return { powerShelfId: "a", interfacesDeleted: 2 };
      },
    });
    router.service(PowerShelfService, { refreshPowerShelf: ({ id }) => noted(calls, ["refresh", id]) });
  };
  expect((await runAgainst(routes, "ps delete a --yes")).out).toBe("Power shelf a marked for deletion.\n");
  expect((await runAgainst(routes, "ps force-delete a -d --yes")).out).toBe(
    "Power shelf a deleted with 2 network interfaces.\n",
  );
  expect((await runAgainst(routes, "ps force-delete a --yes -o json")).out).toBe(
    '{\n  "id": "a",\n  "interfaces_deleted": 2\n}\n',
  );
  expect((await runAgainst(routes, "ps refresh a")).code).toBe(0);
  expect(calls).toEqual([
    ["delete", "a"],
    ["force", "a", true],
    ["force", "a", false],
    ["refresh", "a"],
  ]);
});

describe("metadata", () => {
  function server({ overtakenTimes = 0 } = {}) {
    const updates: PowerShelfMetadataUpdateRequest[] = [];
    let version = 1;
    let metadata = create(MetadataSchema, {
      name: "old",
      description: "text",
      labels: [{ key: "a", value: "1" }, { key: "bare" }],
    });
    const routes = (router: Parameters<Parameters<typeof runAgainst>[0]>[0]) => {
      router.service(Forge, {
        findPowerShelves: ({ powerShelfId }) => ({
          powerShelves: powerShelfId?.id === "s" ? [{ id: { id: "s" }, version: `V${version}`, metadata }] : [],
        }),
        updatePowerShelfMetadata: (request) => {
          updates.push(request);
          if (updates.length <= overtakenTimes) {
            version++;
            throw new ConnectError("changed meanwhile", Code.FailedPrecondition);
          }
          metadata = request.metadata ?? metadata;
          return {};
        },
        getExpectedPowerShelf: () => ({ metadata: { name: "expected", labels: [{ key: "b", value: "2" }] } }),
      });
      router.service(PowerShelfService, {
        listExpectedPowerShelves: ({ powerShelfId }) => ({
          expectedPowerShelves: powerShelfId === "s" ? [{ id: "e", bmcMac: "m", powerShelfId }] : [],
        }),
      });
    };
    return { updates, run: (line: string) => runAgainst(routes, line) };
  }
  const labels = (request: PowerShelfMetadataUpdateRequest | undefined) =>
    request?.metadata?.labels.map(({ key, value }) => (value === undefined ? key : `${key}=${value}`));

  test("set changes only what is given, against the version that was read", async () => {
    const { run, updates } = server();
    expect((await run("ps metadata set s --name new")).code).toBe(0);
    expect(updates[0]).toMatchObject({ ifVersionMatch: "V1", metadata: { name: "new", description: "text" } });
    expect(labels(updates[0])).toEqual(["a=1", "bare"]);
  });

  test("labels are added, changed and removed by key", async () => {
    const { run, updates } = server();
    await run("ps metadata add-label s --key a --value 9");
    await run("ps metadata add-label s --key c");
    await run("ps metadata remove-labels s --keys a c");
    expect(labels(updates[0])).toEqual(["a=9", "bare"]);
    expect(labels(updates[1])).toEqual(["a=9", "bare", "c"]);
    expect(labels(updates[2])).toEqual(["bare"]);
  });

  test("a change that was overtaken is made again on what the other wrote", async () => {
    const { run, updates } = server({ overtakenTimes: 1 });
    expect((await run("ps metadata set s --name new")).code).toBe(0);
    expect(updates.map(({ ifVersionMatch }) => ifVersionMatch)).toEqual(["V1", "V2"]);
  });

  test("a version that the caller names is not replaced by another", async () => {
    const { run, updates } = server({ overtakenTimes: 1 });
    expect((await run("ps metadata set s --name new --if-version-match V7")).code).toBe(4);
    expect(updates.map(({ ifVersionMatch }) => ifVersionMatch)).toEqual(["V7"]);
  });

  test("from-expected-power-shelf keeps what the entry leaves open, unless all is replaced", async () => {
    const { run, updates } = server();
    await run("ps metadata from-expected-power-shelf s");
    expect(updates[0]?.metadata).toMatchObject({ name: "expected", description: "text" });
    expect(labels(updates[0])).toEqual(["a=1", "bare", "b=2"]);
    await run("ps metadata from-expected-power-shelf s --replace-all");
    expect(updates[1]?.metadata).toMatchObject({ name: "expected", description: "" });
    expect(labels(updates[1])).toEqual(["b=2"]);
  });

  test.each([
    ["ps metadata show nothing", 3],
    ["ps metadata set s", 2],
    ["ps metadata remove-labels s --keys nope", 3],
    ["ps metadata from-expected-power-shelf other", 3],
  ])("%s ends with %i and changes nothing", async (line, code) => {
    const { run, updates } = server();
    expect((await run(line)).code).toBe(code);
    expect(updates).toEqual([]);
  });
});

describe("health-report", () => {
  const add = async (args: readonly string[], options = {}) => {
    const sent: InsertPowerShelfHealthReportRequest[] = [];
    const result = await runAgainst(
      (router) => router.service(Forge, { insertPowerShelfHealthReport: (request) => noted(sent, request) }),
      args,
      options,
    );
    return { ...result, sent };
  };
  const report = '{"source":"me","alerts":[{"id":"Fan","message":"slow"}]}';

  test("a report is taken as text, from a file's content or from standard input", async () => {
    for (const result of [
      await add(["ps", "hr", "add", "s", "--health-report", report]),
      await add(["ps", "hr", "add", "s", "--health-report", "-"], { stdin: report }),
    ]) {
      expect(result.code).toBe(0);
      expect(result.sent[0]).toMatchObject({
        powerShelfId: { id: "s" },
        healthReportEntry: {
          mode: HealthReportApplyMode.Merge,
          report: { source: "me", alerts: [{ id: "Fan", message: "slow" }] },
        },
      });
    }
  });

  test("a template takes a message and the mode", async () => {
    const { sent } = await add([
      "ps",
      "health-report",
      "add",
      "s",
      "--template",
      "out-for-repair",
      "--message",
      "RMA 7",
      "--replace",
    ]);
    expect(sent[0]?.healthReportEntry).toMatchObject({
      mode: HealthReportApplyMode.Replace,
      report: { source: "out-for-repair", alerts: [{ message: "RMA 7" }] },
    });
  });

  test("the empty template can be given back as it is", async () => {
    const { out } = await add(["ps", "hr", "print-empty-template"]);
    expect((await add(["ps", "hr", "add", "s", "--health-report", out])).code).toBe(0);
  });

  test("a report is shown with its end, and without it to principals who may call forge.Forge only", async () => {
    const show = (mayCall: boolean, ...args: string[]) =>
      runAgainst(
        (router) =>
          router
            .service(HealthReportService, {
              listHealthReports({ kind }) {
                if (!mayCall) throw new ConnectError("no", Code.PermissionDenied);
                const expiresAt = { seconds: 1_767_225_600n };
                return { reports: [{ report: { source: `me on ${kind}` }, mode: 1, counts: true, expiresAt }] };
              },
            })
            .service(Forge, {
              listPowerShelfHealthReports: () => ({ healthReportEntries: [{ report: { source: "me in forge" } }] }),
            }),
        ["ps", "hr", "show", "s", ...args],
      );
    expect((await show(true)).out).toMatch(/SOURCE +MODE +COUNTS +EXPIRES[\s\S]*me on power_shelf +merge +yes/);
    expect(JSON.parse((await show(true, "-o", "json")).out)).toMatchObject([{ expires_at: "2026-01-01T00:00:00Z" }]);
    expect((await show(false)).out).toMatch(/SOURCE +MODE +OBSERVED[\s\S]*me in forge +merge/);
  });

  test("--print-only sends nothing", async () => {
    const { out, sent } = await add(["ps", "hr", "add", "s", "--template", "degraded", "--print-only"]);
    expect(sent).toEqual([]);
    expect(JSON.parse(out)).toMatchObject({ source: "degraded" });
  });

  test.each([
    [["--health-report", "{"], "--health-report: not a health report"],
    [["--health-report", '{"alert":[]}'], 'key "alert" is unknown'],
    [[], "either --health-report or --template"],
    [["--template", "constructor"], "Allowed choices are"],
  ])("%j is refused", async (args, message) => {
    const { code, err, sent } = await add(["ps", "hr", "add", "s", ...args]);
    expect({ code, sent }).toEqual({ code: 2, sent: [] });
    expect(err).toContain(message);
  });
});
