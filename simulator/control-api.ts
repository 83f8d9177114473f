import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { z } from "zod";
import { describeFirmware, describeMachine, describeShelf, describeSwitch } from "./control-descriptions.ts";
import { MACHINE_ROUTES } from "./control-machine-routes.ts";
import { RACK_ROUTES } from "./control-rack-routes.ts";
import {
  type ControlCall,
  type ControlOptions,
  noContent,
  noDevice,
  ok,
  type Reply,
  type Route,
  refused,
} from "./control-route.ts";
import type { Conduct } from "./devices/power.ts";
import { PROFILE_NAMES, TRAITS, traitsOf } from "./devices/profile.ts";
import type { FaultBook } from "./faults/fault-book.ts";
import { type FaultRule, faultRuleSchema, matchesPattern } from "./faults/fault-rule.ts";
import { InvalidInput, parseInput } from "./invalid-input.ts";
import { MAAS_ROUTES } from "./maas/control-routes.ts";
import { MAAS } from "./maas/maas-api.ts";
import { RACK_MANAGER } from "./rack-manager/grpc-server.ts";
import { readBody, splitTarget } from "./request-body.ts";
import { FASTEST_SPEED, SLOWEST_SPEED } from "./simulated-clock.ts";
import { profile } from "./site/fields.ts";
import { expectedShelf } from "./site/site-file.ts";

const powerSchema = z.strictObject({ power: z.enum(["on", "off"]) });
const profileSchema = z.strictObject({ profile });
const speedSchema = z.strictObject({ speed: z.number().min(SLOWEST_SPEED).max(FASTEST_SPEED) });

const DEVICE_KINDS = ["power_shelf", "switch", "machine"] as const;

const ROUTES: readonly Route[] = [
  ["GET", /^\/devices$/, listDevices],
  ["GET", /^\/devices\/([^/]+)$/, getDevice],
  ["POST", /^\/devices\/([^/]+)\/power$/, switchPower],
  [
    "GET",
    /^\/inventory$/,
    ({ options }) =>
      ok([...options.shelves.values()].map(({ spec }) => expectedShelf(spec, options.endpoints.redfishPort))),
  ],
  ...RACK_ROUTES,
  ...MAAS_ROUTES,
  ["GET", /^\/profiles$/, () => ok(describeProfiles())],
  ["PUT", /^\/devices\/([^/]+)\/profile$/, setProfile],
  ["GET", /^\/faults$/, ({ options }) => ok(options.faults.list().map(describeFault))],
  ["POST", /^\/faults$/, addFault],
  ["DELETE", /^\/faults$/, ({ options }) => ok({ removed: options.faults.clear() })],
  ["DELETE", /^\/faults\/([^/]+)$/, removeFault],
  ["GET", /^\/speed$/, ({ options }) => ok({ speed: options.clock.speed })],
  ["PUT", /^\/speed$/, putSpeed],
  ...MACHINE_ROUTES,
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
  const { path, query } = splitTarget(request.url);
  const text = await readBody(request);
  if (text === undefined) return refused(413, "the body is too large");
  const matching = ROUTES.flatMap(([method, pattern, handle]) => {
    const match = pattern.exec(path);
    return match === null ? [] : [{ method, handle, id: match[1] ?? "" }];
  });
  const route = matching.find(({ method }) => method === request.method);
  if (matching.length === 0)
    return refused(
      404,
      `there is no ${path}; see /devices, /inventory, /clusters, /images, /profiles, /faults and /speed`,
    );
  if (route === undefined) return refused(405, `${path} knows ${matching.map(({ method }) => method).join(", ")} only`);
  try {
    const { host = "", range } = request.headers;
    const given = { id: decode(route.id), query: new URLSearchParams(query), body: parseJson(text), host, range };
    return route.handle({ options, ...given });
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

/** Shelves first, machines last, each kind in the order of its racks. */
function listDevices({ options, query }: ControlCall): Reply {
  const asked = query.get("kind");
  const kind = DEVICE_KINDS.find((each) => each === asked);
  if (asked !== null && kind === undefined) throw new InvalidInput("kind", `must be one of ${DEVICE_KINDS.join(", ")}`);
  const { shelves, machines, switches } = options;
  const devices = [...shelves.values(), ...switches.values(), ...machines.values()];
  return ok(
    devices
      .filter(({ spec }) => kind === undefined || spec.kind === kind)
      .map(({ spec }) => describe(options, spec.id)),
  );
}

const deviceOf = ({ shelves, machines, switches }: ControlOptions, id: string) =>
  shelves.get(id) ?? switches.get(id) ?? machines.get(id);

function getDevice({ options, id }: ControlCall): Reply {
  const device = deviceOf(options, id);
  if (device === undefined) return noDevice(id);
  const { components, flashes } = describeFirmware(device);
  const { effects, requests, eventStreams } = device;
  return ok({ ...describe(options, id), components, flashes, effects, requests, event_streams: eventStreams });
}

function switchPower({ options, id, body }: ControlCall): Reply {
  const device = deviceOf(options, id);
  if (device === undefined) return noDevice(id);
  const { power } = parseInput(powerSchema, body);
  const lie = options.faults.strike("lie_state", { device: id });
  const conduct: Conduct = lie === undefined ? { is: "honest" } : { is: "lying", faultId: lie.id };
  device.switchAtRack(power, conduct);
  return ok(describe(options, id));
}

const describeProfiles = () => ({
  traits: TRAITS,
  profiles: Object.fromEntries(PROFILE_NAMES.map((name) => [name, traitsOf(name)])),
});

/** As if the controller had been exchanged for one of another make; what it keeps stays. */
function setProfile({ options, id, body }: ControlCall): Reply {
  const device = deviceOf(options, id);
  if (device === undefined) return noDevice(id);
  device.setTraits(traitsOf(parseInput(profileSchema, body).profile));
  return ok(describe(options, id));
}

function describe({ shelves, machines, switches, endpoints }: ControlOptions, id: string) {
  const shelf = shelves.get(id);
  if (shelf !== undefined) return describeShelf(shelf, endpoints.redfishPort);
  const tray = switches.get(id);
  if (tray !== undefined) return describeSwitch(tray, endpoints.redfishPort);
  const machine = machines.get(id);
  return machine === undefined ? undefined : describeMachine(machine, endpoints);
}

function addFault({ options, body }: ControlCall): Reply {
  const { shelves, machines, switches, site } = options;
  const clusters = site.clusters.map(({ name }) => name);
  const rule = checkFaultRule(body, [
    ...shelves.keys(),
    ...machines.keys(),
    ...switches.keys(),
    ...clusters,
    RACK_MANAGER,
    MAAS,
    ...site.maasHosts.map(({ id }) => id),
  ]);
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

function removeFault({ options, id }: ControlCall): Reply {
  return options.faults.remove(id) ? noContent : refused(404, `there is no fault ${id}; GET /faults lists them`);
}

function putSpeed({ options, body }: ControlCall): Reply {
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

function send(response: ServerResponse, { status, body, content, headers = {} }: Reply): void {
  if (content !== undefined) {
    response.writeHead(status, { "Content-Type": "application/octet-stream", "Accept-Ranges": "bytes", ...headers });
    return void response.end(content);
  }
  if (body === undefined) return void response.writeHead(status, headers).end();
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(text),
  });
  response.end(text);
}
