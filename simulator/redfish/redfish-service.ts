import type { IncomingHttpHeaders } from "node:http";
import type { ManagedDevice } from "../devices/managed-device.ts";
import type { Conduct } from "../devices/power.ts";
import type { FaultBook } from "../faults/fault-book.ts";
import type { Occasion } from "../faults/fault-rule.ts";
import type { SeededValues } from "../seeded-values.ts";
import { Accounts } from "./accounts.ts";
import { type Answer, reasonInMessageOnly, refuse } from "./answer.ts";
import type { Fetched } from "./fetch-medium.ts";
import {
  findResource,
  RESOURCE_METHODS,
  type Resource,
  type ResourceCall,
  type ResourceMethod,
  type ResourceTree,
} from "./resources.ts";
import { SESSION_SERVICE } from "./service-resources.ts";
import type { Upload } from "./update/upload.ts";

export interface RedfishRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** What an answer to the same request asked to be fetched first. */
  readonly fetched?: Fetched;
  /** In place of the body, for paths that take images. */
  readonly upload?: Upload;
}

/** How the device takes a power command that is given now. */
function conductAt(faults: FaultBook, occasion: Occasion): Conduct {
  if (faults.strike("lie_accept", occasion) !== undefined) return { is: "idle" };
  const lie = faults.strike("lie_state", occasion);
  return lie === undefined ? { is: "honest" } : { is: "lying", faultId: lie.id };
}

const NO_QUERY = new URLSearchParams();

/** The Redfish service of one device: who may ask, what is there, and what comes back. Knows nothing of sockets. */
export class RedfishService<D extends ManagedDevice = ManagedDevice> {
  readonly #device: D;
  readonly #faults: FaultBook;
  readonly #seeded: SeededValues;
  readonly #accounts: Accounts;
  readonly #tree: ResourceTree<D>;
  #managerRestarts: number;

  constructor(options: {
    device: D;
    tree: ResourceTree<D>;
    faults: FaultBook;
    seeded: SeededValues;
    realNow: () => number;
    /** Those of another service on the same controller. Absent: its own. */
    accounts?: Accounts;
  }) {
    this.#device = options.device;
    this.#faults = options.faults;
    this.#seeded = options.seeded;
    this.#accounts = options.accounts ?? new Accounts(options.device.spec, options.realNow);
    this.#tree = options.tree;
    this.#managerRestarts = options.device.managerRestarts;
  }

  get accounts(): Accounts {
    return this.#accounts;
  }

  answer(request: RedfishRequest): Answer {
    // A controller that restarted, by whatever cause, knows no session of before.
    if (this.#managerRestarts !== this.#device.managerRestarts) this.#accounts.forget();
    this.#managerRestarts = this.#device.managerRestarts;
    const answer = this.#answer(request);
    return this.#device.traits.includes("reason_in_message_only") ? reasonInMessageOnly(answer) : answer;
  }

  #answer(request: RedfishRequest): Answer {
    const path = withoutTrailingSlash(request.path);
    const hidden = path.startsWith(SESSION_SERVICE) && this.#device.traits.includes("no_sessions");
    const found = hidden ? undefined : findResource(this.#tree, path);
    // A HEAD is a GET whose body is not sent.
    const method = request.method === "HEAD" ? "GET" : request.method;
    if (found === undefined || !isAllowed(found.resource, method) || found.resource.open?.includes(method) !== true) {
      const refused = this.#authenticate(request);
      if (refused !== undefined) return refused;
    }
    if (found === undefined) return refuse("ResourceMissingAtURI", request.path);
    const { resource, member } = found;
    const handler = isAllowed(resource, method) ? resource[method] : undefined;
    if (handler === undefined)
      return { ...refuse("OperationNotAllowed", request.method), headers: { Allow: allowedMethods(resource) } };
    const body = request.upload === undefined ? parseBody(request.body) : { value: undefined };
    if (body === undefined) return refuse("MalformedJSON");
    return handler(this.#call({ request, path, member, body: body.value }));
  }

  #call(of: { request: RedfishRequest; path: string; member: string; body: unknown }): ResourceCall<D> {
    const { request, path, member, body } = of;
    const occasion: Occasion = { device: this.#device.spec.id, method: request.method, path: request.path };
    return {
      device: this.#device,
      accounts: this.#accounts,
      path,
      query: request.query === "" ? NO_QUERY : new URLSearchParams(request.query),
      body,
      fetched: request.fetched,
      upload: request.upload,
      member,
      conduct: () => conductAt(this.#faults, occasion),
      strike: (type) => this.#faults.strike(type, occasion) !== undefined,
      shownSerial: () => {
        const { id, serial } = this.#device.spec;
        const strike = this.#faults.strike("wrong_serial", occasion);
        return strike === undefined
          ? serial
          : (strike.fault.serial ?? `XX${this.#seeded.label(`${id}/other-serial`, serial.length)}`);
      },
      signIn: (username, password) => {
        const identity = this.#accounts.check(username, password);
        return identity === "right" && this.#faults.strike("wrong_credentials", occasion) !== undefined
          ? "wrong"
          : identity;
      },
    };
  }

  #authenticate({ headers, method, path }: RedfishRequest): Answer | undefined {
    const identity = this.#accounts.identify(headers);
    const occasion: Occasion = { device: this.#device.spec.id, method, path };
    const isRefused = this.#device.firmware.refusesAccounts;
    if (identity === "right" && !isRefused && this.#faults.strike("wrong_credentials", occasion) === undefined)
      return undefined;
    const why = {
      anonymous: "Sign in with basic authentication or with a session.",
      right: "The user name, the password or the session is wrong.",
      wrong: "The user name, the password or the session is wrong.",
      locked: "The account is locked for a while.",
    }[identity];
    return { ...refuse("NoValidSession", why), headers: { "WWW-Authenticate": 'Basic realm="redfish"' } };
  }
}

const isAllowed = <D extends ManagedDevice>(resource: Resource<D>, method: string): method is ResourceMethod =>
  RESOURCE_METHODS.some((known) => known === method && resource[known] !== undefined);

const allowedMethods = <D extends ManagedDevice>(resource: Resource<D>): string =>
  RESOURCE_METHODS.filter((method) => isAllowed(resource, method))
    .join(", ")
    .replace("GET", "GET, HEAD");

const withoutTrailingSlash = (path: string): string =>
  path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;

/** Undefined for a body that is not JSON; the value is undefined for no body at all. */
function parseBody(text: string): { readonly value: unknown } | undefined {
  if (text.trim() === "") return { value: undefined };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
