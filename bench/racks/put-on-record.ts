import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Forge } from "../../contract/forge/forge_pb.js";
import { type FirmwareRecord, imageNamed } from "../../simulator/site/firmware.ts";

/** Serves the images of a site's firmware, as its vendors would. */
export async function serveImages(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const server = createServer(({ url = "" }, response) => {
    const image = imageNamed(decodeURIComponent(url.slice(1)));
    response.writeHead(image === undefined ? 404 : 200).end(image);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

const PATIENCE_MS = 60_000;

/** Puts the firmware into the catalogue, and waits until all files are there. */
export async function putFirmware(grpcAddress: string, records: readonly FirmwareRecord[]): Promise<void> {
  const forge = createClient(Forge, createGrpcTransport({ baseUrl: `http://${grpcAddress}` }));
  for (const { hardware_type, config } of records)
    await forge.createRackFirmware({
      configJson: JSON.stringify(config),
      artifactoryToken: "NOAUTH",
      rackHardwareType: { value: hardware_type },
    });
  const deadline = performance.now() + PATIENCE_MS;
  for (const { config } of records)
    while (!(await forge.getRackFirmware({ id: config.Id })).available) {
      if (performance.now() > deadline) throw new Error(`firmware ${config.Id} does not become available`);
      await pause(50);
    }
}

/** `millwright site apply`, as an operator calls it; returns the milliseconds that it took. */
export async function applySite(httpUrl: string, siteFile: object): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-bench-site-"));
  const file = join(directory, "site.json");
  writeFileSync(file, JSON.stringify(siteFile), { mode: 0o600 });
  const startedAt = performance.now();
  try {
    const millwright = new URL("../../bin/millwright", import.meta.url).pathname;
    const apply = spawn(millwright, ["site", "apply", "--file", file, "--yes", "-o", "json"], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, MILLWRIGHT_SERVER: httpUrl },
    });
    let printed = "";
    apply.stdout.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
    const [code] = await once(apply, "close");
    if (code !== 0) throw new Error(`site apply ended with ${code}: ${refusalsIn(printed)}`);
    return performance.now() - startedAt;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function refusalsIn(printed: string): string {
  const lines = JSON.parse(printed) as readonly { readonly result: string }[];
  return JSON.stringify(lines.filter(({ result }) => result !== "done").slice(0, 3));
}
