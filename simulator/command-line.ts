import { parseArgs } from "node:util";
import { InvalidInput } from "./invalid-input.ts";
import { RACK_MANAGER_APIS, type RackManagerApi } from "./rack-manager/numbering.ts";
import type { SimulatorOptions } from "./simulator.ts";

export const USAGE = `Simulates a datacentre on loopback: power shelves and machines, each at its own 127.x.y.z addresses.

  --data-dir <dir>        where the devices' state lives (required)
  --speed <factor>        1 is lifelike, 20 is twenty times as fast (default 1)
  --seed <number>         serials, MACs, passwords and chances follow from it (default 1)
  --site <site>           racks=N, racks=N,joined=M,maas=H, or a YAML or JSON site file (default racks=2)
  --redfish-port <port>   default: the port of the last start, at first a free one
  --control-port <port>   likewise
  --ssh-port <port>       likewise
  --boot-url <url>        where machines that boot from the network find their boot server (default: where they were last told)
  --rack-manager <api>    the site has a rack manager that speaks this numbering, d or h (default: it has none)
  --fault <json>          a fault rule from the start; may be given several times
  --exit-with-parent      stop when standard input ends
  --help                  this text
`;

export interface CommandLine {
  readonly help: boolean;
  readonly exitWithParent: boolean;
  readonly options: SimulatorOptions;
}

export function parseCommandLine(args: readonly string[]): CommandLine {
  const { values } = parseFlags(args);
  if (values["data-dir"] === undefined && values.help !== true) throw new InvalidInput("--data-dir", "is required");
  return {
    help: values.help === true,
    exitWithParent: values["exit-with-parent"] === true,
    options: {
      dataDir: values["data-dir"] ?? "",
      speed: parseNumber("--speed", values.speed ?? "1"),
      seed: parseNumber("--seed", values.seed ?? "1"),
      site: values.site ?? "racks=2",
      redfishPort: parsePort("--redfish-port", values["redfish-port"] ?? "0"),
      controlPort: parsePort("--control-port", values["control-port"] ?? "0"),
      sshPort: parsePort("--ssh-port", values["ssh-port"] ?? "0"),
      ...(values["boot-url"] !== undefined && { bootUrl: parseBootUrl(values["boot-url"]) }),
      ...(values["rack-manager"] !== undefined && { rackManager: parseApi(values["rack-manager"]) }),
      faults: (values.fault ?? []).map(parseFault),
    },
  };
}

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        "data-dir": { type: "string" },
        speed: { type: "string" },
        seed: { type: "string" },
        site: { type: "string" },
        "redfish-port": { type: "string" },
        "control-port": { type: "string" },
        "ssh-port": { type: "string" },
        "boot-url": { type: "string" },
        "rack-manager": { type: "string" },
        fault: { type: "string", multiple: true },
        "exit-with-parent": { type: "boolean" },
        help: { type: "boolean" },
      },
    });
  } catch (error) {
    throw new InvalidInput("", error instanceof Error ? error.message : String(error));
  }
}

function parseApi(text: string): RackManagerApi {
  const api = RACK_MANAGER_APIS.find((each) => each === text);
  if (api === undefined)
    throw new InvalidInput("--rack-manager", `"${text}" must be one of ${RACK_MANAGER_APIS.join(", ")}`);
  return api;
}

function parseNumber(flag: string, text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new InvalidInput(flag, `"${text}" is not a number`);
  return value;
}

function parsePort(flag: string, text: string): number {
  const port = parseNumber(flag, text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new InvalidInput(flag, `"${text}" is not a port; use 0 to 65535`);
  return port;
}

function parseBootUrl(text: string): string {
  if (!/^https?:\/\/[^/]+\/?$/.test(text)) throw new InvalidInput("--boot-url", `"${text}" is not http://host:port`);
  return text.replace(/\/$/, "");
}

function parseFault(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidInput("--fault", `is not JSON: ${text}`);
  }
}
