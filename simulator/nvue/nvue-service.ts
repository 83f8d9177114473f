import { z } from "zod";
import type { Switch } from "../devices/switch.ts";
import { Accounts } from "../redfish/accounts.ts";
import type { Answer } from "../redfish/answer.ts";
import type { RedfishRequest } from "../redfish/redfish-service.ts";

const ROOT = "/nvue_v1";
const APP = `${ROOT}/cluster/apps/nmx-controller`;
const REVISIONS = `${ROOT}/revision`;

const clusterSchema = z.strictObject({ state: z.enum(["enabled", "disabled"]) });
const applySchema = z.object({ state: z.literal("apply") });
const startSchema = z.object({ "@start": z.object({ state: z.literal("start") }) });

const ok = (body: unknown): Answer => ({ status: 200, body });
const refuse = (status: number, title: string, detail: string): Answer => ({ status, body: { status, title, detail } });
const notFound = (path: string) => refuse(404, "Not Found", `There is no ${path}.`);

/** The REST API of the operating system of a switch: sets of changes that are applied, and the controller of the fabric. */
export class NvueService {
  readonly #switch: Switch;
  readonly #accounts: Accounts;
  #actions = 0;

  constructor(device: Switch, realNow: () => number) {
    this.#switch = device;
    const { username, password } = device.spec.nvos;
    this.#accounts = new Accounts({ username, password, lockout: device.spec.lockout }, realNow);
  }

  answer(request: RedfishRequest): Answer {
    const path = request.path.replace(/\/$/, "");
    if (!path.startsWith(ROOT)) return notFound(path);
    if (this.#accounts.identify(request.headers) !== "right")
      return {
        ...refuse(401, "Unauthorized", "The user name or the password is wrong."),
        headers: { "WWW-Authenticate": 'Basic realm="nvue"' },
      };
    const body = jsonOf(request.body);
    if (body === undefined) return refuse(400, "Bad Request", "The body is not JSON.");
    return this.#answer(request.method, path, { query: new URLSearchParams(request.query), body: body.value });
  }

  #answer(method: string, path: string, given: { query: URLSearchParams; body: unknown }): Answer {
    const revision = path.startsWith(`${REVISIONS}/`) ? decoded(path.slice(REVISIONS.length + 1)) : undefined;
    switch (`${method} ${revision === undefined ? path : `${REVISIONS}/*`}`) {
      case `GET ${ROOT}/cluster`:
        return this.#cluster(given.query.get("rev"));
      case `PATCH ${ROOT}/cluster`:
        return this.#changeCluster(given.query.get("rev"), given.body);
      case `GET ${ROOT}/cluster/apps`:
        return ok({ "nmx-controller": this.#app() });
      case `GET ${ROOT}/cluster/apps/running`:
        return ok(this.#switch.runsController() === "no" ? {} : { "nmx-controller": this.#app() });
      case `GET ${APP}`:
        return ok(this.#app());
      case `POST ${APP}`:
        return this.#start(given.body);
      case `GET ${REVISIONS}`:
        return ok(
          Object.fromEntries(
            Object.entries(this.#switch.revisions).map(([name, { state }]) => [name, { state, transition: {} }]),
          ),
        );
      case `DELETE ${REVISIONS}/*`:
        return this.#switch.removeRevision(revision ?? "") ? ok({}) : notFound(revision ?? "");
      case `POST ${REVISIONS}`:
        return ok({ [this.#switch.openRevision()]: { state: "pending", transition: {} } });
      case `GET ${REVISIONS}/*`:
        return this.#revision(revision ?? "");
      case `PATCH ${REVISIONS}/*`:
        return this.#apply(revision ?? "", given.body);
      default:
        return notFound(path);
    }
  }

  #app() {
    const { status, reason, additionInfo } = this.#switch.fabric;
    return { "app-id": "nmx-c-nvos", "app-ver": "1.0.0", status, reason, "addition-info": additionInfo };
  }

  #start(body: unknown): Answer {
    if (!startSchema.safeParse(body).success) return refuse(422, "Unprocessable", "The one action here is @start.");
    if (!this.#switch.startController()) return refuse(409, "Conflict", "The cluster is not enabled.");
    this.#actions += 1;
    return { status: 201, body: this.#actions, headers: { Location: `${ROOT}/action/${this.#actions}` } };
  }

  /** As it is, or as it would be with a set of changes. */
  #cluster(revision: string | null): Answer {
    if (revision === null) return ok({ state: this.#switch.cluster });
    const changes = this.#switch.revisions[revision];
    return changes === undefined ? notFound(revision) : ok({ state: changes.cluster ?? this.#switch.cluster });
  }

  #changeCluster(revision: string | null, body: unknown): Answer {
    const read = clusterSchema.safeParse(body);
    if (!read.success) return refuse(422, "Unprocessable", "The state must be enabled or disabled.");
    if (revision === null) return refuse(400, "Bad Request", "The revision is missing.");
    if (!this.#switch.changeCluster(revision, read.data.state)) return refuse(404, "Not Found", "No such revision.");
    return ok(read.data);
  }

  #apply(name: string, body: unknown): Answer {
    if (!applySchema.safeParse(body).success) return refuse(422, "Unprocessable", "The state must be apply.");
    return this.#switch.applyRevision(name) ? this.#revision(name) : notFound(name);
  }

  #revision(name: string): Answer {
    const revision = this.#switch.revisions[name];
    return revision === undefined ? notFound(name) : ok({ state: revision.state, transition: { progress: "" } });
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function jsonOf(text: string): { readonly value: unknown } | undefined {
  if (text.trim() === "") return { value: undefined };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
