import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSimulator } from "../../../simulator/simulator.ts";

export interface MaasHost {
  readonly id: string;
  readonly ipmi_address: string;
  readonly ipmi_mac: string;
  readonly ipmi_username: string;
  readonly ipmi_password: string;
  readonly mac: string;
}

/** A simulated MAAS with servers, and the person beside it. */
export async function startMaasSite(options: { readonly hosts: number; readonly speed?: number }) {
  const dataDir = mkdtempSync(join(tmpdir(), "millwright-maas-"));
  const site = `racks=1,maas=${options.hosts}`;
  const simulator = await startSimulator({ dataDir, speed: options.speed ?? 20_000, seed: 7, site });
  const control = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(simulator.controlUrl + path, { method, ...sent });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };
  const told = await control<{ url: string; api_key: string; hosts: readonly MaasHost[] }>("GET", "/maas");
  return {
    url: told.url,
    apiKey: told.api_key,
    hosts: told.hosts,
    control,
    async stop() {
      await simulator.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
