import { describe, expect, test } from "vitest";
import { parseCommandLine } from "./command-line.ts";

describe("command line", () => {
  test("asks for a data directory and has an answer to everything else", () => {
    expect(parseCommandLine(["--data-dir", "/d"])).toEqual({
      help: false,
      exitWithParent: false,
      options: {
        dataDir: "/d",
        speed: 1,
        seed: 1,
        site: "racks=2",
        redfishPort: 0,
        controlPort: 0,
        sshPort: 0,
        faults: [],
      },
    });
  });

  test("takes every flag, and several faults", () => {
    const flags =
      "--data-dir /d --speed 20 --seed 3 --site racks=9 --redfish-port 8443 --control-port 8444 --exit-with-parent";
    const { exitWithParent, options } = parseCommandLine([
      ...flags.split(" "),
      "--fault",
      '{"a":1}',
      "--fault",
      '{"b":2}',
    ]);
    expect(exitWithParent).toBe(true);
    expect(options).toMatchObject({
      speed: 20,
      seed: 3,
      site: "racks=9",
      redfishPort: 8443,
      controlPort: 8444,
      faults: [{ a: 1 }, { b: 2 }],
    });
  });

  test.each([
    [[], "--data-dir"],
    [["--speed", "fast"], "--speed"],
    [["--seed", ""], "--seed"],
    [["--fault", "{"], "--fault"],
    [["--redfish-port", "70000"], "--redfish-port"],
    [["--control-port", "1.5"], "--control-port"],
    [["--sped", "1"], "--sped"],
  ])("refuses %j by the name of the flag", (flags, named) => {
    const dataDir = named === "--data-dir" ? [] : ["--data-dir", "/d"];
    expect(() => parseCommandLine([...dataDir, ...flags])).toThrow(named);
  });
});
