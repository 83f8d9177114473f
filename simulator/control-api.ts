import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { z } from "zod";
import type { PowerShelf } from "./devices/power-shelf.ts";
import type { FaultBook } from "./faults/fault-book.ts";
import { type FaultRule, faultRuleSchema, matchesPattern } from "./faults/fault-rule.ts";
import { InvalidInput, parseInput } from "./invalid-input.ts";
import { readBody, splitTarget } from "./request-body.ts";
import { FASTEST_SPEED, type SimulatedClock, SLOWEST_SPEED } from "./simulated-clock.ts";

export interface ControlOptions {
  readonly shelves: ReadonlyMap<string, PowerShelf>;
  readonly faults: FaultBook;
  readonly clock: SimulatedClock;
  readonly redfishPort: () => number;
  readonly setSpeed: (speed: number) => void;
  readonly log: (line: string) => void;
}

interface Reply {
  readonly status: number;
  readonly body?: unknown;
}

interface Call {
  readonly options: ControlOptions;
  /** The part of the path that the route leaves open. */
  readonly id: string;
  readonly body: unknown;
}

type Route = readonly [method: string, path: RegExp, handle: (call: Call) => Reply];

const powerSchema = z.strictObject({ power: z.enum(["on", "off"]) });
const speedSchema = z.strictObject({ speed: z.number().min(SLOWEST_SPEED).max(FASTEST_SPEED) });

const ok = (body: unknown): Reply => ({ status: 200, body });
const noContent: Reply = { status: 204 };
const refused = (status: number, message: string, field?: string): Reply => ({
  status,
  body: { error: field === undefined ? { message } : { field, message } },
});

const ROUTES: readonly Route[] = [
  ["GET", /^\/devices$/, ({ options }) => ok([...options.shelves.values()].map((shelf) => describe(shelf, options)))],
  ["GET", /^\/devices\/([^/]+)$/, getDevice],
  ["POST", /^\/devices\/([^/]+)\/power$/, switchPower],
  ["GET", /^\/inventory$/, ({ options }) => ok([...options.shelves.values()].map((shelf) => expected(shelf, options)))],
  ["GET", /^\/faults$/, ({ options }) => ok(options.faults.list().map(describeFault))],
  ["POST", /^\/faults$/, addFault],
  ["DELETE", /^\/faults$/, ({ options }) => ok({ removed: options.faults.clear() })],
  ["DELETE", /^\/faults\/([^/]+)$/, removeFault],
  ["GET", /^\/speed$/, ({ options }) => ok({ speed: options.clock.speed })],
  ["PUT", /^\/speed$/, putSpeed],
];

/** The person at the rack: sees the truth about every device, uses the switches, and breaks things. Loopback only. */
export function createControlServer(options: ControlOptions): Server {
  return createServer({ keepAlive: true }, (request, response) => {
    answer(options, request)
      .catch((error: unknown): Reply => {
        options.log(
          `control ${request.method} ${request.url}: ${error instanceof Error ? error.stack : String(error)}`,
        );
        return refused(500, "the simulator failed; its log says why");
      })
      .then((reply) => send(response, reply));
  }).on("clientError", (_error, socket) => socket.destroy());
}

async function answer(options: ControlOptions, request: IncomingMessage): Promise<Reply> {
  if (isFromBrowser(request))
    return refused(403, "the control API is not for web pages: no Origin header, and a loopback Host");
  const { path } = splitTarget(request.url);
  const text = await readBody(request);
  if (text === undefined) return refused(413, "the body is too large");
  const matching = ROUTES.flatMap(([method, pattern, handle]) => {
    const match = pattern.exec(path);
    return match === null ? [] : [{ method, handle, id: match[1] ?? "" }];
  });
  const route = matching.find(({ method }) => method === request.method);
  if (matching.length === 0) return refused(404, `there is no ${path}; see /devices, /inventory, /faults and /speed`);
  if (route === undefined) return refused(405, `${path} knows ${matching.map(({ method }) => method).join(", ")} only`);
  try {
    return route.handle({ options, id: decode(route.id), body: parseJson(text) });
  } catch (error) {
    if (error instanceof InvalidInput) return refused(400, error.message, error.field);
    throw error;
  }
}

/** The inventory has passwords: a page in a browser on the same machine, or one that rebinds its name to us, gets nothing. */
function isFromBrowser({ headers }: IncomingMessage): boolean {
  const host = (headers.host ?? "localhost").replace(/:\d+$/, "");
  return headers.origin !== undefined || !(host === "localhost" || host.startsWith("127."));
}

function getDevice({ options, id }: Call): Reply {
  const shelf = options.shelves.get(id);
  if (shelf === undefined) return refused(404, `there is no device ${id}; GET /devices lists them`);
  return ok({ ...describe(shelf, options), effects: shelf.effects, requests: shelf.requests });
}

function switchPower({ options, id, body }: Call): Reply {
  const shelf = options.shelves.get(id);
  if (shelf === undefined) return refused(404, `there is no device ${id}; GET /devices lists them`);
  const { power } = parseInput(powerSchema, body);
  const lie = options.faults.strike("lie_state", { device: id });
  shelf.switchAtRack(power, lie === undefined ? { is: "honest" } : { is: "lying", faultId: lie.id });
  return ok(describe(shelf, options));
}

function addFault({ options, body }: Call): Reply {
  const rule = checkFaultRule(body, options.shelves.keys());
  return { status: 201, body: describeFault(options.faults.add(rule)) };
}

/** A rule for a device that does not exist would never strike, and its author would never learn why. */
export function checkFaultRule(input: unknown, deviceIds: Iterable<string>, root = ""): FaultRule {
  const rule = parseInput(faultRuleSchema, input, root);
  for (const id of deviceIds) if (matchesPattern(rule.device, id)) return rule;
  throw new InvalidInput(
    root === "" ? "device" : `${root}.device`,
    `no device matches "${rule.device}"; GET /devices lists them`,
  );
}

function removeFault({ options, id }: Call): Reply {
  return options.faults.remove(id) ? noContent : refused(404, `there is no fault ${id}; GET /faults lists them`);
}

function putSpeed({ options, body }: Call): Reply {
  const { speed } = parseInput(speedSchema, body);
  options.setSpeed(speed);
  return ok({ speed });
}

const describeFault = ({ id, rule, since, seen, applied }: ReturnType<FaultBook["add"]>) => ({
  id,
  ...rule,
  since: new Date(since).toISOString(),
  seen,
  applied,
});

function describe(shelf: PowerShelf, { redfishPort }: ControlOptions) {
  const { kind, id, rack, slot, address, mac, serial, vendor, model, layout, bmcFirmware, supplies } = shelf.spec;
  const { power, reported, meter } = shelf.read();
  const on = power === "on" || power === "powering_off";
  return {
    id,
    kind,
    rack,
    slot,
    address,
    port: redfishPort(),
    mac,
    serial,
    vendor,
    model,
    layout,
    firmware: bmcFirmware,
    power,
    reported_power: reported,
    meter,
    psus: supplies.map((supply) => ({ ...supply, on, health: "ok" })),
  };
}

const expected = ({ spec }: PowerShelf, { redfishPort }: ControlOptions) => ({
  bmc_mac_address: spec.mac,
  bmc_username: spec.username,
  bmc_password: spec.password,
  shelf_serial_number: spec.serial,
  bmc_ip_address: `${spec.address}:${redfishPort()}`,
  rack_id: spec.rack,
  metadata: { name: spec.id },
});

function parseJson(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidInput("", "the body is not JSON");
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function send(response: ServerResponse, { status, body }: Reply): void {
  if (body === undefined) return void response.writeHead(status).end();
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(text),
  });
  response.end(text);
}
