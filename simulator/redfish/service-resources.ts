import type { ManagedDevice } from "../devices/managed-device.ts";
import { MOST_SESSIONS, SESSION_TIMEOUT_SECONDS, type Session } from "./accounts.ts";
import { type Answer, noContent, ok, refuse } from "./answer.ts";
import { SUBSCRIPTIONS, subscriptionMembers, subscriptionResources } from "./events/event-subscriptions.ts";
import { collection, link, type Resource, type ResourceCall } from "./resources.ts";
import { TASK_SERVICE, taskMembers, taskResources } from "./update/task-resources.ts";
import { firmwareMembers, UPDATE, updateResources } from "./update/update-resources.ts";

const ROOT = "/redfish/v1";
export const SESSION_SERVICE = `${ROOT}/SessionService`;
const SESSIONS = `${SESSION_SERVICE}/Sessions`;
const EVENTS = `${ROOT}/EventService/SSE`;
/** As few as a real controller was documented to allow. */
const MOST_EVENT_STREAMS = 2;

export interface ServiceOptions {
  /** Whether it shows computer systems. */
  readonly systems: boolean;
}

/** What every Redfish service has, whatever it manages: root, sessions, account, events, updates, tasks. */
export function serviceResources<D extends ManagedDevice>(options: ServiceOptions): [string, Resource<D>][] {
  return [
    ["/redfish", { open: ["GET"], GET: () => ok({ v1: `${ROOT}/` }) }],
    [ROOT, { open: ["GET"], GET: (call) => ok(serviceRoot(call, options.systems)) }],
    [SESSION_SERVICE, { GET: () => ok(sessionService()) }],
    [SESSIONS, { open: ["POST"], GET: listSessions, POST: createSession }],
    [`${ROOT}/AccountService`, { GET: ({ device }) => ok(accountService(device.spec.lockout)) }],
    [`${ROOT}/EventService`, { GET: ({ device }) => ok(eventService(device)) }],
    [EVENTS, { GET: streamEvents }],
    [SUBSCRIPTIONS, subscriptionResources],
    ...updateResources<D>(),
    ...taskResources<D>(),
  ];
}

/** Sessions come and go, so they are found by their collection. */
const sessionMembers: [string, Resource] = [
  SESSIONS,
  {
    GET({ accounts, member, path }) {
      const session = accounts.session(member);
      return session === undefined ? refuse("ResourceMissingAtURI", path) : ok(sessionBody(session));
    },
    DELETE: ({ accounts, member, path }) =>
      accounts.closeSession(member) ? noContent : refuse("ResourceMissingAtURI", path),
  },
];

/** Members of collections that every service has. */
export const serviceMembers: readonly [string, Resource][] = [
  sessionMembers,
  subscriptionMembers,
  firmwareMembers,
  ...taskMembers,
];

function serviceRoot({ device }: ResourceCall, systems: boolean) {
  const sessions = !device.traits.includes("no_sessions");
  return {
    "@odata.id": `${ROOT}/`,
    "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
    Id: "RootService",
    Name: "Root Service",
    RedfishVersion: "1.17.0",
    UUID: device.spec.uuid,
    Vendor: device.spec.vendor,
    ProtocolFeaturesSupported: { ExpandQuery: { ExpandAll: false }, FilterQuery: false, SelectQuery: false },
    Chassis: link(`${ROOT}/Chassis`),
    Managers: link(`${ROOT}/Managers`),
    ...(systems ? { Systems: link(`${ROOT}/Systems`) } : {}),
    ...(sessions ? { SessionService: link(SESSION_SERVICE), Links: { Sessions: link(SESSIONS) } } : {}),
    AccountService: link(`${ROOT}/AccountService`),
    EventService: link(`${ROOT}/EventService`),
    UpdateService: link(UPDATE),
    Tasks: link(TASK_SERVICE),
  };
}

const sessionService = () => ({
  "@odata.id": SESSION_SERVICE,
  "@odata.type": "#SessionService.v1_1_8.SessionService",
  Id: "SessionService",
  Name: "Session Service",
  ServiceEnabled: true,
  SessionTimeout: SESSION_TIMEOUT_SECONDS,
  Sessions: link(SESSIONS),
});

function listSessions({ accounts, path }: ResourceCall) {
  return ok(
    collection(
      path,
      "SessionCollection",
      "Sessions",
      accounts.sessions.map(({ id }) => `${SESSIONS}/${id}`),
    ),
  );
}

function createSession({ accounts, body, signIn }: ResourceCall) {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    return refuse("UnrecognizedRequestBody", "it must be a JSON object.");
  }
  const { UserName, Password } = body as { UserName?: unknown; Password?: unknown };
  if (UserName === undefined) return refuse("PropertyMissing", "UserName");
  if (Password === undefined) return refuse("PropertyMissing", "Password");
  if (typeof UserName !== "string") return refuse("PropertyValueTypeError", "UserName");
  if (typeof Password !== "string") return refuse("PropertyValueTypeError", "Password");
  const signedIn = signIn(UserName, Password);
  if (signedIn === "locked") return refuse("NoValidSession", "The account is locked for a while.");
  if (signedIn === "wrong") return refuse("NoValidSession", "The user name or the password is wrong.");
  const session = accounts.openSession();
  if (session === undefined) return refuse("SessionLimitExceeded", String(MOST_SESSIONS));
  return {
    status: 201,
    headers: { "X-Auth-Token": session.token, Location: `${SESSIONS}/${session.id}` },
    body: { ...sessionBody(session), UserName },
  };
}

const sessionBody = (session: Session) => ({
  "@odata.id": `${SESSIONS}/${session.id}`,
  "@odata.type": "#Session.v1_7_0.Session",
  Id: session.id,
  Name: "User Session",
  CreatedTime: new Date(session.createdAt).toISOString(),
});

const accountService = (lockout: { failures: number; seconds: number }) => ({
  "@odata.id": `${ROOT}/AccountService`,
  "@odata.type": "#AccountService.v1_13_0.AccountService",
  Id: "AccountService",
  Name: "Account Service",
  ServiceEnabled: true,
  AccountLockoutThreshold: lockout.failures,
  AccountLockoutDuration: lockout.seconds,
});

/** A loopback address that no device has. */
const ELSEWHERE = "https://127.255.255.254:9";

function eventService({ traits }: ManagedDevice) {
  const offers = !traits.includes("no_events");
  return {
    "@odata.id": `${ROOT}/EventService`,
    "@odata.type": "#EventService.v1_9_0.EventService",
    Id: "EventService",
    Name: "Event Service",
    ServiceEnabled: offers,
    Status: offers ? { State: "Enabled", Health: "OK" } : { State: "Disabled" },
    DeliveryRetryAttempts: 3,
    EventFormatTypes: ["Event"],
    ...(offers &&
      !traits.includes("events_pushed") && {
        ServerSentEventUri: traits.includes("events_elsewhere") ? `${ELSEWHERE}${EVENTS}` : EVENTS,
      }),
    Subscriptions: link(SUBSCRIPTIONS),
    Actions: {},
  };
}

function streamEvents({ device, path }: ResourceCall): Answer {
  if (device.traits.includes("no_events") || device.traits.includes("events_pushed"))
    return refuse("ResourceMissingAtURI", path);
  if (device.eventStreams.open >= MOST_EVENT_STREAMS)
    return refuse("EventSubscriptionLimitExceeded", String(MOST_EVENT_STREAMS));
  return { status: 200, isEventStream: true };
}
