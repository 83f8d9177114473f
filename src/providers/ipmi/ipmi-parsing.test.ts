import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { aTarget } from "../../capabilities/conformance/device-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { bytesOf, failureOf, isCipherTrouble } from "./answers.ts";
import { bootFlagsOf, setBootFlags } from "./boot-flags.ts";
import { ailmentsOf, healthOf, powerOf } from "./chassis-status.ts";
import { firmwareOf } from "./computer-system.ts";
import { eventLogOf } from "./event-log.ts";
import { fruIdentityOf } from "./field-replaceable-unit.ts";
import { lightOf } from "./machine-locator.ts";
import { readingsOf, sensorsNotWell } from "./sensor-list.ts";
import { systemUuidOf } from "./system-guid.ts";

const target = aTarget({ address: "10.0.0.7", port: 623, username: "admin", password: "pass-word" });
const UNFIT = new RegExp(`[\n${String.fromCharCode(27)}]`);
/** Control characters, commas, colons and letters alike. */
const anyText = fc.array(fc.nat(0x2ff)).map((codes) => String.fromCharCode(...codes));
const asked = { target, what: "Get Chassis Status" };
const bytes = (text: string): number[] => text.split(" ").map((byte) => Number.parseInt(byte, 16));

describe("bytes that ipmitool prints", () => {
  test("are read over several lines", () => {
    expect(bytesOf(asked, { stdout: " 01 05 e0\n 04 00\n" }, 5)).toEqual([1, 5, 0xe0, 4, 0]);
    expect(bytesOf(asked, { stdout: "\n" }, 0)).toEqual([]);
  });

  test("that are too few, or none, are an answer that makes no sense", () => {
    for (const stdout of [" 01", "no bytes here", ""])
      expect(() => bytesOf(asked, { stdout }, 3)).toThrow(DeviceFailure);
    expect(() => bytesOf(asked, { stdout: "the pass-word is pass-word" }, 3)).toThrow(/is \*\*\*/);
  });

  test("never throw anything else, whatever is printed", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(20), (stdout, atLeast) => {
        try {
          const read = bytesOf(asked, { stdout }, atLeast);
          expect(read.length).toBeGreaterThanOrEqual(atLeast);
          expect(read.every((byte) => byte >= 0 && byte <= 255)).toBe(true);
        } catch (error) {
          expect(error).toMatchObject({ name: "DeviceFailure", disposition: "retry", family: "odd" });
        }
      }),
    );
  });
});

describe("what ipmitool complains of", () => {
  const HPM = "Loading IANA PEN Registry...\nGet HPM.x Capabilities request failed, compcode = d4\n";
  const raw = (code: string, words: string) =>
    `${HPM}Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x8 rsp=0x${code}): ${words}\n`;
  const NOT_ESTABLISHED = "Error: Unable to establish IPMI v2 / RMCP+ session\n";

  test.each([
    ["> RAKP 2 HMAC is invalid\n", "fail", "credentials_rejected", /wrong credentials/],
    ["RAKP 2 message indicates an error : unauthorized name\n", "fail", "credentials_rejected", /wrong credentials/],
    [
      "Error in open session response message : invalid authentication algorithm\n\n",
      "fail",
      "refused_by_device",
      /ipmi\.cipher/,
    ],
    [
      "Error in open session response message : insufficient resources to create a session\n",
      "retry",
      "busy",
      /session/,
    ],
    ["Get Auth Capabilities error\n", "retry", "unreachable", /cannot be reached/],
    ["Address lookup for nohost.invalid failed\nCould not open socket!\n", "retry", "unreachable", /not be reached/],
    ["", "retry", "unreachable", /cannot be reached/],
  ] as const)("%j is told as what it is", (said, disposition, code, words) => {
    const failure = failureOf(asked, { code: 1, stdout: "", stderr: `Loading IANA…\n${said}${NOT_ESTABLISHED}` });
    expect(failure).toMatchObject({ disposition, code, message: expect.stringMatching(words) });
    expect(failure.message).toMatch(/^BMC 10\.0\.0\.7:623 /);
  });

  test.each([
    ["c0", "Node busy", "retry", "busy"],
    ["d2", "Device in init", "retry", "busy"],
    ["d4", "Insufficient privilege level", "fail", "forbidden"],
    ["cc", "Invalid data field in request", "fail", "refused_by_device"],
    ["c1", "Invalid command", "fail", "refused_by_device"],
  ] as const)("completion code %s (%s) becomes %s, %s", (completion, words, disposition, code) => {
    const failure = failureOf(asked, { code: 1, stdout: "", stderr: raw(completion, words) });
    expect(failure).toMatchObject({ disposition, code, status: Number.parseInt(completion, 16) });
    expect(failure.message).toContain(words);
    expect(failure.message).not.toContain("HPM");
  });

  test("a command above the account's privilege is told as a right that it lacks, and not as wrong credentials", () => {
    const failure = failureOf(asked, { code: 1, stdout: "", stderr: raw("d4", "Insufficient privilege level") });
    expect(failure.message).toBe(
      `BMC 10.0.0.7:623: user ${target.username} lacks the right for Get Chassis Status (completion code 0xd4): ` +
        "Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x8 rsp=0xd4): Insufficient privilege level; " +
        "give credentials of an account that has it",
    );
  });

  test("something new is passed on in its own words, to be tried again", () => {
    const failure = failureOf(asked, {
      code: null,
      stdout: "",
      stderr: "Segmentation\u001b[31m fault for pass-word\n",
    });
    expect(failure).toMatchObject({ disposition: "retry", family: "odd" });
    expect(failure.message).toContain("Segmentation [31m fault for ***");
  });

  test("another cipher suite is tried only where the BMC is there and the sign-in was not refused", () => {
    const trouble = (stderr: string) => isCipherTrouble({ code: 1, stdout: "", stderr: stderr + NOT_ESTABLISHED });
    expect(trouble("Error in open session response message : invalid authentication algorithm\n")).toBe(true);
    expect(trouble("")).toBe(true);
    expect(trouble("Get Auth Capabilities error\n")).toBe(false);
    expect(trouble("> RAKP 2 HMAC is invalid\n")).toBe(false);
    expect(isCipherTrouble({ code: 0, stdout: "", stderr: NOT_ESTABLISHED })).toBe(false);
  });

  test("is always a failure of the device without its password, whatever it is", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (stdout, stderr) => {
        const failure = failureOf(asked, { code: 1, stdout, stderr: `${stderr}pass-word` });
        expect(failure).toBeInstanceOf(DeviceFailure);
        expect(failure.message).not.toContain("pass-word");
      }),
    );
  });
});

describe("the chassis", () => {
  test("is on or off by the lowest bit", () => {
    expect(powerOf(bytes("21 10 40"))).toBe("on");
    expect(powerOf(bytes("60 10 40"))).toBe("off");
  });

  test("shows its faults", () => {
    expect(healthOf(bytes("21 10 40"))).toBe("ok");
    expect(healthOf(bytes("21 10 44"))).toBe("warning"); // a drive
    expect(healthOf(bytes("21 10 48"))).toBe("critical"); // cooling
    expect(healthOf(bytes("29 00 00"))).toBe("critical"); // power
    expect(ailmentsOf(bytes("29 00 04"))).toEqual([
      { name: "power fault", health: "critical" },
      { name: "drive fault", health: "warning" },
    ]);
  });

  test("tells of its light only where it says that it does", () => {
    expect(lightOf(bytes("21 10 00"))).toBe("unknown");
    expect(lightOf(bytes("21 10 40"))).toBe("dark");
    expect(lightOf(bytes("21 10 50"))).toBe("lit");
    expect(lightOf(bytes("21 10 60"))).toBe("lit");
  });
});

describe("boot flags", () => {
  test.each([
    ["01 05 a0 04 00 00 00", { valid: true, override: { source: "pxe", lasts: "once" } }],
    ["01 05 e0 04 00 00 00", { valid: true, override: { source: "pxe", lasts: "always" } }],
    ["01 05 80 08 00 00 00", { valid: true, override: { source: "disk", lasts: "once" } }],
    ["01 05 80 14 00 00 00", { valid: true, override: { source: "cd", lasts: "once" } }],
    ["01 05 80 18 00 00 00", { valid: true, override: { source: "other", lasts: "once" } }], // the firmware's set-up
    ["01 05 00 04 00 00 00", { valid: false, override: { source: "pxe", lasts: "once" } }], // used up
    ["01 05 00 00 00 00 00", { valid: false, override: { source: "none", lasts: "once" } }],
  ] as const)("%s are understood", (answer, expected) => {
    expect(bootFlagsOf(bytes(answer))).toEqual(expected);
  });

  test("that are set are read back as the same, for one boot, and say how to boot", () => {
    for (const source of ["pxe", "disk", "cd"] as const) {
      const { data = [] } = setBootFlags(source, "uefi");
      expect(bootFlagsOf([1, ...data])).toEqual({ valid: true, override: { source, lasts: "once" } });
      expect((data[1] ?? 0) & 0x20).toBe(0x20);
      expect((setBootFlags(source, "legacy").data?.[1] ?? 0) & 0x20).toBe(0);
    }
  });
});

describe("the system's UUID", () => {
  const uuid = "4c4c4544-0042-4a9b-80e3-b3c04f4e3132";
  const written = "4c 4c 45 44 00 42 4a 9b 80 e3 b3 c0 4f 4e 31 32";

  test.each([
    ["as in SMBIOS", "44 45 4c 4c 42 00 9b 4a 80 e3 b3 c0 4f 4e 31 32"],
    ["as in the IPMI specification", "32 31 4e 4f c0 b3 e3 80 9b 4a 42 00 44 45 4c 4c"],
    ["as it is written", written],
  ])("is the same whether it is sent %s", (_how, answer) => {
    expect(systemUuidOf(bytes(answer))).toBe(uuid);
  });

  test.each([
    ["nobody set one", "00 ".repeat(16).trim()],
    ["it was erased", "ff ".repeat(16).trim()],
    ["it is no UUID in any order", "00 11 22 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f"],
    ["half of it is missing", "44 45 4c 4c"],
  ])("is none where %s", (_why, answer) => {
    expect(systemUuidOf(bytes(answer))).toBeNull();
  });

  test.each([
    ["SMBIOS", [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]],
    ["the IPMI specification", [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]],
  ])("sent as %s has it, is never taken for another", (_what, order) => {
    fc.assert(
      fc.property(fc.uuid({ version: [1, 2, 3, 4, 5] }), (any) => {
        const plain = bytes(any.replaceAll("-", "").replace(/(..)(?=.)/g, "$1 "));
        expect(systemUuidOf(order.map((at) => plain[at] ?? 0))).toBe(any);
      }),
    );
  });
});

describe("texts of ipmitool", () => {
  const FRU = ` Chassis Type          : Rack Mount Chassis
 Chassis Serial        : CHASSIS-1
 Board Mfg Date        : Mon Jan  1 00:00:00 1996
 Board Mfg             : Board Maker
 Board Product         : Board
 Board Serial          : BOARD-1
 Product Manufacturer  : Generic
 Product Name          : Server 1
 Product Serial        : SN-1234
`;

  test("the inventory gives the product's serial, else the chassis', and never the board's", () => {
    expect(fruIdentityOf(FRU)).toEqual({ serial: "SN-1234", vendor: "Generic", model: "Server 1" });
    const bare = FRU.replace(/^ Product.*\n/gm, "");
    expect(fruIdentityOf(bare)).toEqual({ serial: "CHASSIS-1", vendor: "Board Maker", model: "Board" });
    expect(fruIdentityOf(bare.replace(/^ Chassis Serial.*\n/m, "")).serial).toBeNull();
    expect(fruIdentityOf(" Device not present (Requested sensor, data, or record not found)\n")).toEqual({
      serial: null,
      vendor: null,
      model: null,
    });
  });

  test("the log is read newest first, with the dates of older and newer releases", () => {
    const log = eventLogOf(
      [
        "1, Pre-Init ,0000000042,Temperature #0x01,Upper Critical going high,Asserted",
        "2,11/14/2026,23:59:59,Power Supply #0x51,Failure detected,Asserted",
        "a,11/15/26,08:01:02 UTC,Power Supply #0x51,Failure detected,Deasserted",
        "SEL has no entries",
      ].join("\n"),
      2,
    );
    expect(log).toEqual([
      { id: "a", at: new Date("2026-11-15T08:01:02Z"), severity: "ok", message: expect.stringMatching(/Deasserted$/) },
      { id: "2", at: new Date("2026-11-14T23:59:59Z"), severity: "critical", message: expect.any(String) },
    ]);
  });

  test("sensors without a number are left out", () => {
    expect(readingsOf("Air,25,degrees C,ok\nFan 1,8400,RPM,ok\nDoor,,,ns\nPSU,disabled,,ns\n\n")).toEqual([
      { name: "Air", value: 25, unit: "Cel" },
      { name: "Fan 1", value: 8_400, unit: "RPM" },
    ]);
  });

  test("sensors beyond a critical or non-recoverable threshold are named, in the words of older and newer releases", () => {
    const list =
      "Air,75,degrees C,cr\nFan 1,300,RPM,lnr\nFan 2,900,RPM,lnc\nVcore,1.1,Volts,nc\nPSU,disabled,,ns\nCPU,95,degrees C,ucr\n";
    expect(sensorsNotWell(list)).toEqual(["Air", "Fan 1", "CPU"].map((name) => ({ name, health: "critical" })));
  });

  test("the firmware's minor version is two decimal digits in one byte", () => {
    expect(firmwareOf(bytes("20 01 02 45 02"))).toBe("2.45");
    expect(firmwareOf(bytes("20 01 89 08 02"))).toBe("9.08");
  });

  test("whatever is written, nothing is thrown, and nothing unfit to show comes out", () => {
    fc.assert(
      fc.property(anyText, fc.nat(10), (text, limit) => {
        const log = eventLogOf(text, limit);
        const shown = [...log.map(({ message }) => message), ...Object.values(fruIdentityOf(text))];
        expect(log.length).toBeLessThanOrEqual(limit);
        expect(shown.filter((value) => UNFIT.test(value ?? ""))).toEqual([]);
        expect(sensorsNotWell(text).filter(({ name }) => UNFIT.test(name))).toEqual([]);
        expect(readingsOf(text).every(({ value }) => Number.isFinite(value))).toBe(true);
      }),
    );
  });
});
