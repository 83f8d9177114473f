import { join } from "node:path";
import type { ProcessBench, StartedProcess } from "./process-bench.ts";
import { startProgram } from "./programs.ts";

export interface InventoryRow {
  readonly bmc_mac_address: string;
  readonly bmc_username: string;
  readonly bmc_password: string;
  readonly shelf_serial_number: string;
  readonly bmc_ip_address: string;
  readonly rack_id: string;
  readonly metadata: { readonly name: string };
}

export interface Device {
  readonly id: string;
  readonly rack: string;
  readonly address: string;
  readonly port: number;
  readonly mac: string;
  readonly serial: string;
  readonly power: string;
}

export interface DeviceDetail extends Device {
  readonly effects: Readonly<Record<"power_on_commands" | "power_off_commands" | "power_changes", number>>;
}

/** The control API of a simulator, whoever started it. */
export interface SimulatorControl {
  readonly controlUrl: string;
  inventory(): Promise<InventoryRow[]>;
  devices(): Promise<Device[]>;
  /** Every device with what was done to it. */
  details(): Promise<DeviceDetail[]>;
  device(id: string): Promise<DeviceDetail>;
  call<T>(method: string, path: string, body?: unknown): Promise<T>;
}

export interface SimulatorProcess extends SimulatorControl {
  readonly process: StartedProcess;
}

export async function startSimulatorProcess(
  bench: ProcessBench,
  options: { readonly name?: string; readonly site?: string; readonly speed?: number; readonly seed?: number } = {},
): Promise<SimulatorProcess> {
  const { name = "simulator", site = "racks=1", speed = 50, seed = 1 } = options;
  const started = await startProgram(bench, {
    program: "simulator/main.ts",
    args: ["--data-dir", join(bench.directory, name), "--site", site, "--speed", String(speed), "--seed", String(seed)],
  });
  const [line] = await started.said(/^\{"ready".*$/m);
  const { controlUrl } = JSON.parse(line) as { controlUrl: string };
  return { process: started, ...controlSimulator(controlUrl) };
}

export function controlSimulator(controlUrl: string): SimulatorControl {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(new URL(path, controlUrl), {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };
  const devices = () => call<Device[]>("GET", "/devices?kind=power_shelf");
  const device = (id: string) => call<DeviceDetail>("GET", `/devices/${id}`);
  return {
    controlUrl,
    call,
    devices,
    device,
    inventory: () => call<InventoryRow[]>("GET", "/inventory"),
    details: async () => Promise.all((await devices()).map(({ id }) => device(id))),
  };
}
