import { create, toBinary } from "@bufbuild/protobuf";
import { DurationSchema, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import {
  PowerShelfMaintenanceOperation as Operation,
  PowerShelfSearchFilterSchema,
} from "../../../contract/forge/forge_pb.js";
import {
  ControllerStateOutcomeSchema,
  type DeletedFilter,
  DeletedFilterSchema,
  type HealthReportApplyMode,
  HealthReportApplyModeSchema,
  HealthReportEntrySchema,
  MetadataSchema,
} from "../../../contract/forge/shared_pb.js";
import { TransitionOwnerSchema } from "../../../contract/millwright/v1/lifecycle_pb.js";
import { ExploreStateSchema, TlsTrustModeSchema } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { AppError } from "../../kernel/errors.ts";
import { OWNERS } from "../../kernel/lifecycle.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import { EXPLORE_RESULTS } from "../../lifecycles/expected-device/expected-device.ts";
import { parseBmcEndpoint } from "../../services/device/bmc-endpoint.ts";
import { OUTCOMES, searchFrom } from "../forge/device-messages.ts";
import { operationFrom } from "../forge/power-shelf-messages.ts";
import { stateForForgeWord } from "../forge/state-messages.ts";
import { WIRE_TRUST } from "../millwright/device-messages.ts";
import { EXPLORE_STATES, exploreResultsFrom } from "../millwright/expected-power-shelf-messages.ts";
import { TRANSITION_OWNERS } from "../millwright/lifecycle-messages.ts";
import { endpointText } from "./bmc-endpoint.ts";
import { dateFrom, durationOf, int32Of } from "./fields.ts";
import { healthReportEntryFrom, healthReportEntryOf, WIRE_MODES } from "./health.ts";
import { metadataFrom, metadataOf } from "./metadata.ts";
import { refuseUnstorableText } from "./storable-text.ts";

const UNKNOWN = 99;

/** The field that a conversion refused. */
function refusedField(convert: () => unknown): string | undefined {
  try {
    convert();
  } catch (error) {
    if (error instanceof AppError && error.kind === "invalid_argument") return error.detail.field;
    throw error;
  }
  return undefined;
}

describe("enums", () => {
  test("the two operations have words; UNSPECIFIED and unknown numbers have none", () => {
    expect([Operation.UNSPECIFIED, Operation.POWER_ON, Operation.POWER_OFF, UNKNOWN].map(operationFrom)).toEqual([
      undefined,
      "power_on",
      "power_off",
      undefined,
    ]);
  });

  test("each filter for deleted things is known, and an unknown number is refused", () => {
    const filter = (deleted: DeletedFilter) =>
      searchFrom(create(PowerShelfSearchFilterSchema, { deleted }), stateForForgeWord).deleted;
    expect(DeletedFilterSchema.values.map(({ number }) => filter(number))).toEqual(["exclude", "only", "include"]);
    expect(refusedField(() => filter(UNKNOWN as DeletedFilter))).toBe("deleted");
  });

  test("every explore result has a state, and every state but UNSPECIFIED finds the results that are shown as it", () => {
    expect(Object.keys(EXPLORE_STATES).sort()).toEqual([...EXPLORE_RESULTS].sort());
    for (const { number } of ExploreStateSchema.values) {
      const shown = EXPLORE_RESULTS.filter((result) => EXPLORE_STATES[result] === number);
      expect([...(exploreResultsFrom(number, "explore_state") ?? [])].sort()).toEqual(shown.sort());
    }
    expect(exploreResultsFrom(0, "explore_state")).toBeUndefined();
    expect(refusedField(() => exploreResultsFrom(UNKNOWN, "explore_state"))).toBe("explore_state");
  });

  test.each([
    ["owner", OWNERS, TRANSITION_OWNERS, TransitionOwnerSchema],
    ["apply mode", ["merge", "replace"], WIRE_MODES, HealthReportApplyModeSchema],
    ["trust", ["ca", "pin", "off"], WIRE_TRUST, TlsTrustModeSchema],
    ["outcome", ["waiting", "failed", "moved", "resting"], OUTCOMES, ControllerStateOutcomeSchema],
  ])("every %s has a number of its own in the contract", (_what, words, table, schema) => {
    expect(Object.keys(table).sort()).toEqual([...words].sort());
    const numbers = Object.values(table);
    expect(new Set(numbers).size).toBe(numbers.length);
    for (const number of numbers) expect(schema.values.map((value) => value.number)).toContain(number);
  });
});

describe("a state filter", () => {
  test("takes the contract's words, and finds nothing for a word that is none", () => {
    const state = (controllerState: string) =>
      searchFrom(create(PowerShelfSearchFilterSchema, { controllerState }), stateForForgeWord).state;
    expect(state("fetchingdata")).toBe("fetching_data");
    expect(state("fetching_data")).toBe("(none)");
  });
});

describe("metadata", () => {
  test("survives there and back, a label without a value staying without one", () => {
    const metadata = { name: "ps 1", description: "d", labels: { tier: "gold", spare: null, empty: "" } };
    expect(metadataFrom(create(MetadataSchema, metadataOf(metadata)))).toEqual(metadata);
  });

  test("a key that is given twice is refused", () => {
    const twice = create(MetadataSchema, { name: "ab", labels: [{ key: "k", value: "1" }, { key: "k" }] });
    expect(refusedField(() => metadataFrom(twice))).toBe("metadata.labels");
  });
});

describe("health reports", () => {
  test("survive there and back", () => {
    const at = new Date("2024-05-06T07:08:09.123Z");
    const wire = create(HealthReportEntrySchema, {
      mode: WIRE_MODES.replace,
      report: {
        source: "probe",
        observedAt: timestampFromDate(at),
        triggeredBy: "operator",
        successes: [{ id: "fan" }, { id: "psu", target: "psu-1" }],
        alerts: [
          {
            id: "hot",
            target: "inlet",
            message: "too hot",
            tenantMessage: "slow",
            classifications: ["c"],
            inAlertSince: timestampFromDate(at),
          },
        ],
      },
    });
    const { report, mode } = healthReportEntryFrom(wire);
    const alerts = report.alerts.map((alert) => ({ ...alert, inAlertSince: alert.inAlertSince ?? at }));
    const entry = { mode, expiresAt: null, report: { ...report, observedAt: report.observedAt ?? at, alerts } };
    expect(create(HealthReportEntrySchema, healthReportEntryOf(entry))).toEqual(wire);
  });

  test("what is missing is named", () => {
    expect(refusedField(() => healthReportEntryFrom(undefined))).toBe("health_report_entry");
    expect(refusedField(() => healthReportEntryFrom(create(HealthReportEntrySchema, {})))).toBe(
      "health_report_entry.report",
    );
    const odd = create(HealthReportEntrySchema, { report: { source: "s" }, mode: UNKNOWN as HealthReportApplyMode });
    expect(refusedField(() => healthReportEntryFrom(odd))).toBe("health_report_entry.mode");
  });
});

describe("times and numbers", () => {
  test("a time outside of the calendar is refused, and a missing one is null", () => {
    expect(dateFrom(undefined, "at")).toBeNull();
    expect(dateFrom(timestampFromDate(new Date(1_500)), "at")).toEqual(new Date(1_500));
    const farAway = { ...timestampFromDate(new Date(0)), seconds: 1n << 62n };
    expect(refusedField(() => dateFrom(farAway, "at"))).toBe("at");
  });

  test("a duration that was worked out, as a median of two, goes over the wire", () => {
    const wire = durationOf(milliseconds(3_335.4999999999995));
    expect(wire).toMatchObject({ seconds: 3n, nanos: 335_000_000 });
    if (wire) expect(() => toBinary(DurationSchema, wire)).not.toThrow();
    expect(durationOf(null)).toBeUndefined();
  });

  test("readings become whole numbers of 32 bits", () => {
    expect([null, 239.7, 1e12, -1e12].map(int32Of)).toEqual([undefined, 240, 2_147_483_647, -2_147_483_647]);
  });

  test.each(["10.0.0.7", "10.0.0.7:8443", "bmc-7.example:80", "[fe80::1]:8443", "fe80::1"])(
    "the endpoint %s is shown as it was given",
    (text) => {
      expect(endpointText(parseBmcEndpoint(text, "bmc"))).toBe(text);
    },
  );
});

describe("text that cannot be kept", () => {
  test("is refused wherever it stands, with its path", () => {
    const path = (message: Parameters<typeof create<typeof MetadataSchema>>[1]) =>
      refusedField(() => refuseUnstorableText(MetadataSchema, create(MetadataSchema, message)));
    expect(path({ name: "a\0b" })).toBe("name");
    expect(
      path({
        labels: [
          { key: "k", value: "v" },
          { key: "k2", value: "\0" },
        ],
      }),
    ).toBe("labels[1].value");
    expect(path({ name: "fine", labels: [{ key: "k", value: "v" }] })).toBeUndefined();
  });
});
