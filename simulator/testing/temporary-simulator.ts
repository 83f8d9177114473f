import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SimulatorOptions, startSimulator } from "../simulator.ts";

export interface RedfishReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Undefined when there is no body. Throws on what is not JSON. */
  json<T = Record<string, unknown>>(): T;
}

export interface RedfishCall {
  readonly method?: string;
  readonly body?: unknown;
  /** Sent as it is, in place of `body`. */
  readonly rawBody?: string | Buffer;
  /** The account of the device unless said otherwise; null for none. */
  readonly auth?: readonly [username: string, password: string] | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface InventoryRow {
  readonly bmc_mac_address: string;
  readonly bmc_username: string;
  readonly bmc_password: string;
  readonly shelf_serial_number: string;
  readonly bmc_ip_address: string;
  readonly rack_id: string;
  readonly metadata: { readonly name: string };
}

export interface MachineRow {
  readonly machine_id: string;
  readonly serial: string;
  readonly system_uuid: string;
  readonly mac_addresses: readonly string[];
  readonly bmc_endpoint: string;
  readonly bmc_username: string;
  readonly bmc_password: string;
  readonly ssh_endpoint: string;
  readonly ssh_username: string;
  readonly ssh_password: string;
  readonly ssh_private_key: string;
  readonly jump?: { readonly endpoint: string; readonly username: string; readonly private_key: string };
}

/** A data directory of its own, gone at the end of the test. */
export function temporaryDataDir(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "simulator-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** A running simulator, and both of its APIs as functions. */
export async function startTemporarySimulator(options: Partial<SimulatorOptions> = {}) {
  const dir = temporaryDataDir();
  const simulator = await startSimulator({ dataDir: dir.path, speed: 1, seed: 7, site: "racks=2", ...options });
  const clients = connect({ dataDir: options.dataDir ?? dir.path, controlUrl: simulator.controlUrl });
  return {
    ...clients,
    simulator,
    async [Symbol.asyncDispose]() {
      clients.agent.destroy();
      await simulator.close();
      dir[Symbol.dispose]();
    },
  };
}

export function connect({ dataDir, controlUrl }: { dataDir: string; controlUrl: string }) {
  const agent = new Agent({ keepAlive: true, ca: readFileSync(join(dataDir, "tls-cert.pem")) });

  async function control<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: T }> {
    const init: RequestInit = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await fetch(controlUrl + path, init);
    const text = await response.text();
    return { status: response.status, body: (text === "" ? undefined : JSON.parse(text)) as T };
  }

  async function controllerOf(device: string) {
    const { body: shelves } = await control<InventoryRow[]>("GET", "/inventory");
    const shelf = shelves.find(({ metadata }) => metadata.name === device);
    if (shelf !== undefined)
      return { endpoint: shelf.bmc_ip_address, username: shelf.bmc_username, password: shelf.bmc_password };
    const { body: switches } = await control<Omit<InventoryRow, "shelf_serial_number">[]>("GET", "/inventory/switches");
    const tray = switches.find(({ metadata }) => metadata.name === device);
    if (tray !== undefined)
      return { endpoint: tray.bmc_ip_address, username: tray.bmc_username, password: tray.bmc_password };
    const { body: machines } = await control<MachineRow[]>("GET", "/inventory/machines");
    const machine = machines.find(({ machine_id }) => machine_id === device);
    if (machine === undefined) throw new Error(`no device ${device}`);
    return { endpoint: machine.bmc_endpoint, username: machine.bmc_username, password: machine.bmc_password };
  }

  async function redfish(device: string, path: string, call: RedfishCall = {}): Promise<RedfishReply> {
    const { endpoint, username, password } = await controllerOf(device);
    const [host = "", port = ""] = endpoint.split(/[:/]/);
    const account = call.auth === undefined ? ([username, password] as const) : call.auth;
    return send({ agent, host, port: Number(port), path, call, account });
  }

  return { agent, control, redfish };
}

function send(options: {
  agent: Agent;
  host: string;
  port: number;
  path: string;
  call: RedfishCall;
  account: readonly [string, string] | null;
}): Promise<RedfishReply> {
  const { agent, host, port, path, call, account } = options;
  const { promise, resolve, reject } = Promise.withResolvers<RedfishReply>();
  const body = call.rawBody ?? (call.body === undefined ? "" : JSON.stringify(call.body));
  const outgoing = request(
    {
      agent,
      host,
      port,
      path,
      method: call.method ?? "GET",
      headers: { ...(body === "" ? {} : { "Content-Length": Buffer.byteLength(body) }), ...call.headers },
      ...(account === null ? {} : { auth: account.join(":") }),
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    },
    (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          text,
          json: <T>() => (text === "" ? undefined : JSON.parse(text)) as T,
        });
      });
    },
  );
  outgoing.on("error", reject);
  outgoing.end(body);
  return promise;
}
