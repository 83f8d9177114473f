import { describe, expect, test } from "vitest";
import { aCall, aTarget } from "../../capabilities/conformance/device-bench.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { createBmcGateway } from "../transport/bmc-gateway.ts";
import { chassisControl, GET_CHASSIS_STATUS } from "./chassis-status.ts";
import { createIpmiClient, type IpmiClientOptions } from "./client.ts";
import type { ToolCall, ToolResult } from "./ipmitool.ts";

const target = aTarget({ address: "10.0.0.7", port: 623, username: "admin", password: "pass-word" });
const ON: ToolResult = { code: 0, stdout: " 01 00 00\n", stderr: "" };
const NO_SUITE: ToolResult = {
  code: 1,
  stdout: "",
  stderr:
    "Error in open session response message : invalid authentication algorithm\nError: Unable to establish IPMI v2",
};

function clientThat(answer: (args: readonly string[]) => ToolResult, options: Partial<IpmiClientOptions> = {}) {
  const calls: ToolCall[] = [];
  const client = createIpmiClient({
    gateway: createBmcGateway(),
    async run(call) {
      calls.push(call);
      return answer(call.args);
    },
    ...options,
  });
  const suites = () => calls.map(({ args }) => args[args.indexOf("-C") + 1]);
  return {
    calls,
    suites,
    ask: (at = target) => client.raw(at, GET_CHASSIS_STATUS, aCall()),
    command: () => client.raw(target, chassisControl("reset"), aCall()),
  };
}

describe("ipmitool is called", () => {
  test("without the password among its arguments", async () => {
    const { calls, ask } = clientThat(() => ON);
    expect(await ask()).toEqual([1, 0, 0]);
    expect(calls[0]).toMatchObject({ command: "ipmitool", password: "pass-word" });
    expect(calls[0]?.args.join(" ")).not.toContain("pass-word");
    expect(calls[0]?.args).toEqual(expect.arrayContaining(["-E", "lanplus", "10.0.0.7", "623", "raw", "0x00", "0x01"]));
  });

  test("so that a command is sent once, and only what is read may be sent again", async () => {
    const { calls, ask, command } = clientThat(() => ON);
    await ask();
    await command();
    const tries = calls.map(({ args }) => args[args.indexOf("-R") + 1]);
    expect(tries).toEqual(["2", "1"]);
  });

  test("with the strongest suite first; what a BMC takes is remembered", async () => {
    const { suites, ask } = clientThat((args) => (args.includes("17") ? NO_SUITE : ON));
    await ask();
    await ask();
    expect(suites()).toEqual(["17", "3", "3"]);
  });

  test("with all suites again once the remembered one is refused", async () => {
    let changed = false;
    const { suites, ask } = clientThat((args) => (args.includes("17") === changed ? ON : NO_SUITE));
    await ask();
    changed = true;
    await expect(ask()).rejects.toMatchObject({ family: "declines" });
    await ask();
    expect(suites()).toEqual(["17", "3", "3", "17"]);
  });

  test("with no other suite than the one that is insisted on", async () => {
    const { suites, ask } = clientThat(() => NO_SUITE, { cipher: "17" });
    await expect(ask()).rejects.toMatchObject({ disposition: "fail", message: expect.stringContaining("ipmi.cipher") });
    expect(suites()).toEqual(["17"]);
  });

  test("not at all with credentials that IPMI has no room for", async () => {
    const { calls, ask } = clientThat(() => ON);
    const bad = { disposition: "fail", family: "keeps_out" };
    await expect(ask({ ...target, password: "x".repeat(21) })).rejects.toMatchObject(bad);
    await expect(ask({ ...target, username: "x".repeat(17) })).rejects.toMatchObject(bad);
    await expect(ask({ ...target, password: "a\0b" })).rejects.toMatchObject(bad);
    expect(calls).toEqual([]);
  });
});

test("a server without the program says what to install, and learns nothing about the BMC from it", async () => {
  const gateway = createBmcGateway();
  const client = createIpmiClient({ gateway, command: "/no/such/ipmitool" });
  const failure: unknown = await client.raw(target, GET_CHASSIS_STATUS, aCall()).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(StepFailure);
  expect(failure).toMatchObject({ name: "StepFailure", disposition: "fail" });
  expect((failure as Error).message).toMatch(/install the package ipmitool, or set ipmi\.command/);
  expect(gateway.status(target)).toMatchObject({ breaker: "closed" });
});
