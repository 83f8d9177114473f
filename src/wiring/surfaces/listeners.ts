import { join } from "node:path";
import { createConsole } from "../../api/console/console.ts";
import { createDeviceEvents } from "../../api/rest/device-events.ts";
import { createFiles } from "../../api/rest/files.ts";
import { createFirmwareFiles } from "../../api/rest/firmware/firmware-files.ts";
import { createRestApi, type RestApiDeps } from "../../api/rest/rest-api.ts";
import type { RouteDeps } from "../../api/rest/route.ts";
import { createSeeds, type SeedRouteDeps } from "../../api/rest/seeds.ts";
import type { TlsMaterial } from "../../api/transport/listener.ts";
import type { ApiServersOptions, MachinePort } from "../../api/transport/server.ts";
import { type Config, namesOf, publicUrlsOf } from "../../config.ts";
import type { FileListener } from "../../services/rack-firmware/files.ts";

type Part = ReturnType<typeof createFiles>;

/** Beside the sources, and at the same place in a package. */
const CONSOLE = join(import.meta.dirname, "..", "..", "..", "console", "dist");

export interface ListenersWiring {
  readonly config: Config;
  /** Absent: no listener speaks TLS. */
  readonly tls: TlsMaterial | undefined;
  readonly rest: Omit<RestApiDeps, "isHere">;
  readonly operations: Part;
  /** Signing in to the console, and out. */
  readonly sessions: Part;
  readonly seeds: Omit<SeedRouteDeps, "scope">;
  readonly reportUnexpected: RouteDeps["reportUnexpected"];
}

/**
 * What answers where. Without `boot.listen` and `bmc.listen` everything is on `http.listen`; a listener that is set takes its routes
 * away from there.
 */
export function wireListeners(
  wiring: ListenersWiring,
): Pick<ApiServersOptions, "grpcListen" | "httpListen" | "http" | "fallback" | "machinePorts" | "browsers" | "tls"> {
  const { config, tls: material, rest, operations, sessions, seeds, reportUnexpected } = wiring;
  const { boot, bmc } = config;
  const [isBootApart, isBmcApart] = [boot.listen !== null, bmc.listen !== null];
  const files = createFiles({ directory: config.install.filesDir, reportUnexpected });
  const firmwareOf = (...listeners: readonly FileListener[]) =>
    createFirmwareFiles({ services: seeds.services, listeners, reportUnexpected });
  const eventsOf = (...listeners: readonly FileListener[]) =>
    createDeviceEvents({ services: seeds.services, listeners, reportUnexpected });
  // What BMCs were given before there was a listener for them goes on where it began.
  const earlier = { besides: publicUrlsOf(config).bmc };
  const seedsHere = createSeeds({ ...seeds, scope: { nodes: !isBootApart, runs: isBmcApart ? earlier : true } });
  const tls = material === undefined ? {} : { tls: material };
  const console = createConsole({ directory: CONSOLE });

  const machinePorts: MachinePort[] = [];
  if (boot.listen !== null)
    machinePorts.push({
      setting: "boot.listen",
      listen: boot.listen,
      http: registering(
        createRestApi({ ...rest, isHere: ({ isForBoot = false }) => isForBoot }),
        files,
        createSeeds({ ...seeds, scope: { nodes: true, runs: false } }),
      ),
      ...(boot.tls && withoutClients(tls)),
    });
  if (bmc.listen !== null)
    machinePorts.push({
      setting: "bmc.listen",
      listen: bmc.listen,
      http: registering(
        firmwareOf("own"),
        eventsOf("own"),
        createSeeds({ ...seeds, scope: { nodes: false, runs: true } }),
      ),
      ...(bmc.tls && withoutClients(tls)),
    });
  return {
    grpcListen: config.grpc.listen,
    httpListen: config.http.listen,
    http: registering(
      operations,
      sessions,
      console.routes,
      createRestApi({ ...rest, isHere: ({ isForBoot = false }) => !(isForBoot && isBootApart) }),
      ...(isBootApart ? [] : [files]),
      isBmcApart ? firmwareOf("shared") : firmwareOf("shared", "own"),
      ...(isBmcApart ? [] : [eventsOf("shared")]),
      seedsHere,
    ),
    fallback: console.fallback,
    machinePorts,
    browsers: { hosts: namesOf(config), origins: config.http.allowedOrigins },
    ...tls,
  };
}

const registering =
  (...parts: readonly Part[]): ApiServersOptions["http"] =>
  async (app) => {
    for (const part of parts) await app.register(part);
  };

/** Machines and BMCs have no certificates of ours, and some give up when they are asked for one. */
function withoutClients({ tls }: { readonly tls?: TlsMaterial }): Pick<MachinePort, "tls"> {
  return tls === undefined ? {} : { tls: { cert: tls.cert, key: tls.key } };
}
