import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../../contract/millwright/v1/error_info_pb.js";
import { AppError, ERROR_KINDS } from "../../kernel/errors.ts";
import { contractOf, ERROR_CODES, grpcCodeOf, toConnectError, toHttpError } from "./error-codes.ts";

const neverReported = (): string => {
  throw new Error("an error for callers was reported as a bug");
};

describe("codes", () => {
  test("every kind of error has its own gRPC code in our own contract", () => {
    expect(new Set(ERROR_KINDS.map((kind) => grpcCodeOf(kind, "millwright"))).size).toBe(ERROR_KINDS.length);
  });

  test("forge.Forge differs in exactly the two kinds its clients expect otherwise", () => {
    const different = ERROR_KINDS.filter((kind) => grpcCodeOf(kind, "forge") !== grpcCodeOf(kind, "millwright"));
    expect(different.map((kind) => [kind, Code[grpcCodeOf(kind, "forge")]])).toEqual([
      ["failed_precondition", "InvalidArgument"],
      ["conflict", "FailedPrecondition"],
    ]);
  });

  test("only the service forge.Forge speaks the forge contract", () => {
    expect(contractOf("forge.Forge")).toBe("forge");
    expect(contractOf("millwright.v1.PowerShelfService")).toBe("millwright");
    expect(contractOf("forge.ForgeX")).toBe("millwright");
  });

  test("only internal errors and missing abilities count as the server's fault in HTTP", () => {
    const serverSide = ERROR_KINDS.filter((kind) => ERROR_CODES[kind].http >= 500);
    expect(serverSide).toEqual(["unsupported", "unavailable", "deadline_exceeded", "internal"]);
  });
});

describe("an AppError", () => {
  const error = new AppError("not_found", "power shelf ps-1 does not exist", {
    field: "power_shelf_ids",
    next: "millwright power-shelf list",
  });

  test("keeps its message, and its kind, field and next step travel as a detail", () => {
    const sent = toConnectError(error, "millwright", neverReported);
    expect(sent.code).toBe(Code.NotFound);
    expect(sent.rawMessage).toBe("power shelf ps-1 does not exist");
    expect(sent.findDetails(ErrorInfoSchema)).toMatchObject([
      { kind: "not_found", field: "power_shelf_ids", next: "millwright power-shelf list" },
    ]);
  });

  test("tells its true kind also where the contract wants another code", () => {
    const sent = toConnectError(new AppError("conflict", "version 3 is now 4"), "forge", neverReported);
    expect(sent.code).toBe(Code.FailedPrecondition);
    expect(sent.findDetails(ErrorInfoSchema)).toMatchObject([{ kind: "conflict" }]);
  });

  test("becomes status and body in REST", () => {
    expect(toHttpError(error, neverReported)).toEqual({
      status: 404,
      body: {
        error: {
          kind: "not_found",
          message: "power shelf ps-1 does not exist",
          field: "power_shelf_ids",
          next: "millwright power-shelf list",
        },
      },
    });
  });

  test("with a huge or broken message still fits into a header", () => {
    const sent = toConnectError(
      new AppError("invalid_argument", `bad \ud800 ${"x".repeat(100_000)}`),
      "millwright",
      neverReported,
    );
    expect(sent.rawMessage.length).toBeLessThan(1_100);
    expect(() => encodeURIComponent(sent.rawMessage)).not.toThrow();
  });
});

describe("anything else that is thrown", () => {
  test.each([
    ["an Error", new Error("password=hunter2")],
    ["an internal AppError", new AppError("internal", "password=hunter2")],
    ["a string", "password=hunter2"],
    ["undefined", undefined],
  ])("%s is reported, and the caller gets only the reference", (_, thrown) => {
    const reported: unknown[] = [];
    const sent = toConnectError(thrown, "forge", (cause) => {
      reported.push(cause);
      return "ref-7";
    });
    expect(reported).toEqual([thrown]);
    expect(sent.code).toBe(Code.Internal);
    expect(sent.rawMessage).toBe("internal error; see the server log, reference ref-7");
    expect(JSON.stringify(sent.findDetails(ErrorInfoSchema))).not.toContain("hunter2");
  });
});
