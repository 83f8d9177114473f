import { createHash } from "node:crypto";
import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { createCertificate } from "../../../simulator/certificate/certificate.ts";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";

/** In what this BMC differs from a helpful one. */
export interface FrontTraits {
  readonly ways?: readonly ("simple" | "multipart" | "push")[];
  /** It lists no protocols, and refuses an address with http. */
  readonly refusesHttp?: true;
  /** unlisted: there is no list of them. gone_when_done: it knows none that has ended. none: it tells of none at all. */
  readonly tasks?: "listed" | "unlisted" | "gone_when_done" | "none";
  readonly tellsNoPercent?: true;
  /** The new version shows only after this. */
  readonly runsAfter?: "host_reset" | "bmc_reset";
  /** Of every answer that it gives. */
  readonly contentType?: string;
  /** It begins the update, and cuts the connection without an answer. */
  readonly losesAnswers?: true;
  /** It has no certificate. */
  readonly isPlain?: true;
  /** It answers before it has read the whole image. */
  readonly refusesEarly?: number;
}

/** A flash that the BMC has begun. */
export interface Flash {
  readonly way: "simple" | "multipart" | "push";
  readonly targets: readonly string[];
  readonly bytes: number;
  readonly digest: string;
  readonly component: string;
  readonly version: string;
}

interface Task {
  readonly id: number;
  readonly flash: Flash;
  state: string;
  percent: number;
  message: string;
}

const ROOT = "/redfish/v1";
const INVENTORY = `${ROOT}/UpdateService/FirmwareInventory`;
const TASKS = `${ROOT}/TaskService/Tasks`;
export const USER = "admin";
export const PASSWORD = "canary-4711";

/** Its first line says what it is the firmware of. */
export const anImage = (component: string, version: string, bytes = 200_000): Buffer =>
  Buffer.concat([Buffer.from(`MILLWRIGHT-FW front ${component} ${version}\n`), Buffer.alloc(bytes, "image ")]);

/**
 * A BMC with an `UpdateService`, written from the Redfish schemas and as unhelpful as real ones are. Nothing happens in it by itself:
 * the test says when a flash is done, when the BMC restarts and when it is back.
 */
export class UpdateFront {
  readonly flashes: Flash[] = [];
  readonly tasks: Task[] = [];
  readonly requests: string[] = [];
  readonly versions = new Map([
    ["BMC_0", "1.0"],
    ["BIOS", "7.1"],
    ["CPLD_0", "3"],
  ]);
  readonly staged = new Map<string, string>();
  readonly serial: string = "front-0001";
  /** What it has besides, by the path below the root. */
  readonly more = new Map<string, object>();
  uuid = "5f0b7a8e-0000-4000-8000-000000000001";
  power: "On" | "Off" = "On";
  health = "OK";
  hostResets = 0;
  bmcResets = 0;
  /** So many requests for an update are answered with 503. */
  busy = 0;
  mode: "up" | "away" | "rejects" = "up";
  readonly traits: FrontTraits;
  readonly #server: SecureServer | ReturnType<typeof createPlainServer>;
  readonly #sockets = new Set<Socket>();

  private constructor(traits: FrontTraits) {
    this.traits = traits;
    const answer = (request: IncomingMessage, response: ServerResponse) => void this.#answer(request, response);
    this.#server = traits.isPlain
      ? createPlainServer(answer)
      : createSecureServer(createCertificate({ addresses: ["127.0.0.1"], now: new Date() }), answer);
    for (const event of ["connection", "secureConnection"] as const) {
      this.#server.on(event, (socket: Socket) => {
        this.#sockets.add(socket.on("close", () => this.#sockets.delete(socket)));
        if (this.mode === "away") socket.destroy();
      });
    }
  }

  static async start(traits: FrontTraits = {}): Promise<UpdateFront> {
    const front = new UpdateFront(traits);
    await new Promise<void>((resolve) => front.#server.listen(0, "127.0.0.1", resolve));
    return front;
  }

  get target(): BmcTarget {
    const { port } = this.#server.address() as AddressInfo;
    const scheme = this.traits.isPlain ? "http" : "https";
    return { address: "127.0.0.1", port, scheme, username: USER, password: PASSWORD, trust: { mode: "pin" } };
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** A task from earlier, which has ended. */
  noteTask(targets: readonly string[] = []): void {
    const flash: Flash = { way: "simple", targets, bytes: 0, digest: "", component: "bmc", version: "0.9" };
    this.tasks.push({ id: this.tasks.length + 1, flash, state: "Completed", percent: 100, message: "" });
  }

  /** How far the last task is. */
  progress(percent: number, message = ""): void {
    Object.assign(this.#last, { percent, message });
  }

  /** Ends the last task. lies: it says Completed, and nothing was written. */
  finish(end: "ok" | "lies" | "fails" = "ok"): void {
    const task = this.#last;
    task.percent = 100;
    task.state = end === "fails" ? "Exception" : "Completed";
    if (end === "fails") task.message = "the image at http://elsewhere/secret is not for this device";
    if (end !== "ok") return;
    const { component, version } = task.flash;
    (this.traits.runsAfter === undefined ? this.versions : this.staged).set(this.#partOf(component), version);
  }

  /** The BMC is away from now on. */
  goAway(): void {
    this.mode = "away";
    for (const socket of this.#sockets) socket.destroy();
  }

  comeBack({ newCertificate = false, rejects = false, keepsTasks = true } = {}): void {
    if (newCertificate && "setSecureContext" in this.#server) {
      this.#server.setSecureContext(createCertificate({ addresses: ["127.0.0.1"], now: new Date() }));
    }
    if (!keepsTasks) this.tasks.length = 0;
    this.bmcResets += 1;
    this.mode = rejects ? "rejects" : "up";
  }

  get #last(): Task {
    const task = this.tasks.at(-1);
    if (!task) throw new Error("no update was begun");
    return task;
  }

  #partOf(component: string): string {
    return [...this.versions.keys()].find((id) => id.toLowerCase().startsWith(component)) ?? component;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "").replace(/\/$/, "");
    const method = request.method ?? "";
    this.requests.push(`${method} ${path}`);
    const basic = `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString("base64")}`;
    if (path !== ROOT && (this.mode === "rejects" || request.headers.authorization !== basic)) {
      return this.#send(response, 401, {});
    }
    if (method === "POST") return this.#post(path, request, response);
    if (method === "PATCH") {
      await readAll(request);
      return this.#send(response, 204);
    }
    const found = this.#resource(path);
    this.#send(response, found === undefined ? 404 : 200, found === undefined ? {} : { "@odata.id": path, ...found });
  }

  async #post(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (path.endsWith("/Actions/Manager.Reset")) {
      await readAll(request);
      this.#send(response, 204);
      this.#activate("bmc_reset");
      return;
    }
    if (path.endsWith("/Actions/ComputerSystem.Reset")) {
      const { ResetType } = JSON.parse((await readAll(request)).toString()) as { ResetType: string };
      this.power = ResetType === "ForceOff" ? "Off" : "On";
      if (ResetType !== "ForceOff") this.hostResets += 1;
      this.#activate("host_reset");
      return this.#send(response, 204);
    }
    if (this.traits.refusesEarly !== undefined) {
      response.writeHead(this.traits.refusesEarly, { connection: "close" }).end("{}");
      return;
    }
    const body = await readAll(request).catch(() => undefined);
    if (body === undefined) return; // the sender has cut it
    if (this.busy > 0) {
      this.busy -= 1;
      return this.#send(response, 503, {}, { "retry-after": "0" });
    }
    const flash = await this.#flashOf(path, request, body);
    if (typeof flash === "string") return this.#send(response, 400, { error: { message: flash } });
    this.#begin(flash, response);
  }

  #begin(flash: Flash, response: ServerResponse): void {
    this.flashes.push(flash);
    const task = { id: this.tasks.length + 1, flash, state: "Running", percent: 0, message: "" };
    this.tasks.push(task);
    if (this.traits.losesAnswers) {
      response.socket?.destroy();
    } else if (this.traits.tasks === "none") {
      this.#send(response, 204);
    } else {
      const place = `${TASKS}/${task.id}`;
      this.#send(response, 202, { "@odata.id": place, TaskState: "Running" }, { location: `${place}/Monitor` });
    }
  }

  async #flashOf(path: string, request: IncomingMessage, body: Buffer): Promise<Flash | string> {
    if (path.endsWith("SimpleUpdate")) {
      const { ImageURI, Targets = [] } = JSON.parse(body.toString()) as { ImageURI: string; Targets?: string[] };
      if (this.traits.refusesHttp) return `TransferProtocol HTTP is not supported: ${ImageURI}`;
      const image = Buffer.from(await (await fetch(ImageURI)).arrayBuffer());
      return describeFlash("simple", Targets, image);
    }
    const type = request.headers["content-type"] ?? "";
    const [, boundary] = /boundary=(\S+)/.exec(type) ?? [];
    if (boundary === undefined) return describeFlash("push", [], body);
    const parts = splitParts(body, boundary);
    const { Targets } = JSON.parse(parts[0]?.toString() ?? "{}") as { Targets: string[] };
    return describeFlash("multipart", Targets, parts[1] ?? Buffer.alloc(0));
  }

  #activate(by: "host_reset" | "bmc_reset"): void {
    if (by === "bmc_reset") this.bmcResets += 1;
    if (this.traits.runsAfter !== by) return;
    for (const [id, version] of this.staged) this.versions.set(id, version);
    this.staged.clear();
  }

  #resource(path: string): object | undefined {
    const { ways = ["simple", "multipart", "push"], tasks = "listed" } = this.traits;
    const link = (at: string) => ({ "@odata.id": `${ROOT}/${at}` });
    const links = (ids: Iterable<string>, at: string) => ({
      Members: [...ids].map((id) => ({ "@odata.id": `${at}/${id}` })),
    });
    const running = tasks === "gone_when_done" ? this.tasks.filter(({ state }) => state === "Running") : this.tasks;
    const fixed: Readonly<Record<string, object>> = {
      "": {
        UUID: this.uuid,
        Systems: link("Systems"),
        Managers: link("Managers"),
        UpdateService: link("UpdateService"),
        ...(this.more.has("/Chassis") && { Chassis: link("Chassis") }),
        ...(tasks !== "unlisted" && tasks !== "none" && { Tasks: link("TaskService") }),
      },
      "/Systems": links(["1"], `${ROOT}/Systems`),
      "/Systems/1": {
        SerialNumber: this.serial,
        PowerState: this.power,
        LastResetTime: `reset ${this.hostResets}`,
        Status: { HealthRollup: this.health },
        BootProgress: { LastState: "OSRunning" },
        Actions: { "#ComputerSystem.Reset": { target: `${ROOT}/Systems/1/Actions/ComputerSystem.Reset` } },
      },
      "/Managers": links(["bmc"], `${ROOT}/Managers`),
      "/Managers/bmc": {
        ManagerType: "BMC",
        LastResetTime: `start ${this.bmcResets}`,
        Actions: { "#Manager.Reset": { target: `${ROOT}/Managers/bmc/Actions/Manager.Reset` } },
      },
      "/UpdateService": {
        ServiceEnabled: true,
        FirmwareInventory: link("UpdateService/FirmwareInventory"),
        ...(ways.includes("simple") && {
          Actions: {
            "#UpdateService.SimpleUpdate": { target: `${ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate` },
          },
        }),
        ...(ways.includes("multipart") && {
          MultipartHttpPushUri: `https://bmc.example${ROOT}/UpdateService/multipart`,
        }),
        ...(ways.includes("push") && {
          HttpPushUri: `${ROOT}/UpdateService/push`,
          HttpPushUriTargets: [],
          HttpPushUriOptions: { HttpPushUriApplyTime: { ApplyTime: "OnReset" } },
        }),
      },
      "/UpdateService/FirmwareInventory": links(this.versions.keys(), INVENTORY),
      "/TaskService": { Tasks: link("TaskService/Tasks") },
      "/TaskService/Tasks": links(
        running.map(({ id }) => String(id)),
        TASKS,
      ),
    };
    const own = path.slice(ROOT.length);
    const added = this.more.get(own);
    if (added !== undefined) return added;
    if (Object.hasOwn(fixed, own)) return fixed[own];
    const part = own.replace("/UpdateService/FirmwareInventory/", "");
    if (this.versions.has(part)) return { Id: part, Name: part, Version: this.versions.get(part), Updateable: true };
    const task = running.find(({ id }) => own === `/TaskService/Tasks/${id}`);
    return task && this.#describeTask(task);
  }

  #describeTask({ id, flash, state, percent, message }: Task): object {
    return {
      Id: String(id),
      TaskState: state,
      ...(!this.traits.tellsNoPercent && { PercentComplete: percent }),
      Messages: message === "" ? [] : [{ Message: message }],
      Payload: { JsonBody: JSON.stringify({ Targets: flash.targets }) },
    };
  }

  #send(response: ServerResponse, status: number, body?: object, headers: Record<string, string> = {}): void {
    response.writeHead(status, { "content-type": this.traits.contentType ?? "application/json", ...headers });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  }
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** The contents of the parts of a form. */
function splitParts(body: Buffer, boundary: string): Buffer[] {
  const parts: Buffer[] = [];
  let from = body.indexOf(`--${boundary}`);
  for (;;) {
    const start = body.indexOf("\r\n\r\n", from);
    const end = body.indexOf(`\r\n--${boundary}`, start);
    if (start < 0 || end < 0) return parts;
    parts.push(body.subarray(start + 4, end));
    from = end + 2;
  }
}

function describeFlash(way: Flash["way"], targets: readonly string[], image: Buffer): Flash | string {
  const line = image.subarray(0, 200).toString().split("\n")[0] ?? "";
  const [magic, , component = "", version = ""] = line.split(" ");
  if (magic !== "MILLWRIGHT-FW") return "this is no image";
  const digest = createHash("sha256").update(image).digest("hex");
  return { way, targets, bytes: image.length, digest, component, version };
}
