import type { Config } from "./load.ts";
import { isLoopback } from "./networks.ts";

/** Where others reach this server; null: nobody has said. */
interface PublicUrls {
  readonly boot: string | null;
  readonly bmc: string | null;
  readonly firmware: string | null;
  readonly fleet: string | null;
}

type Named = Pick<Config, "boot" | "bmc" | "install" | "firmware" | "fleet">;

/** `install.public_url` names the one listener that there was before the others: it speaks for those that are not set. */
export function publicUrlsOf({ boot, bmc, install, firmware, fleet }: Named): PublicUrls {
  const ofHttp = boot.listen === null ? install.publicUrl : null;
  const ofBmc = bmc.publicUrl ?? (bmc.listen === null ? ofHttp : null);
  return {
    boot: install.publicUrl,
    bmc: ofBmc,
    firmware: firmware.publicUrl ?? ofBmc,
    fleet: fleet.publicUrl ?? ofHttp,
  };
}

type ListenerSetting = "grpc.listen" | "http.listen" | "boot.listen" | "bmc.listen";
export const API_LISTENERS: readonly ListenerSetting[] = ["grpc.listen", "http.listen"];
const LISTENERS: readonly ListenerSetting[] = [...API_LISTENERS, "boot.listen", "bmc.listen"];

const addressOf = ({ grpc, http, boot, bmc }: Config, setting: ListenerSetting) =>
  ({ "grpc.listen": grpc, "http.listen": http, "boot.listen": boot, "bmc.listen": bmc })[setting].listen;

/** Those that others than this computer reach, in words. */
export const openListeners = (config: Config, settings: readonly ListenerSetting[]): string[] =>
  settings.flatMap((setting) => {
    const at = addressOf(config, setting);
    return at === null || isLoopback(at.host) ? [] : [`${setting} is on ${at.host}`];
  });

export function listenerMistakes(config: Config): string[] {
  const { auth, boot, tls } = config;
  const open = openListeners(config, LISTENERS);
  return [
    ...(auth.mode === "off" && open.length > 0
      ? [
          `auth.mode is "off" while ${open.join(" and ")}: without authentication all listeners must be on loopback (127.0.0.1, ::1 or localhost)`,
        ]
      : []),
    ...(boot.tls && tls.certFile === null ? ["boot.tls needs tls.cert_file and tls.key_file"] : []),
    ...sharedPorts(config),
  ];
}

/** Two listeners cannot have one port; without this the server would say so only when it starts. */
function sharedPorts(config: Config): string[] {
  const known = new Map<string, string>();
  return LISTENERS.flatMap((setting) => {
    const at = addressOf(config, setting);
    if (at === null || at.port === 0) return [];
    const place = `${at.host}:${at.port}`;
    const other = known.get(place);
    known.set(place, setting);
    return other === undefined ? [] : [`${other} and ${setting} are both ${place}: each needs a port of its own`];
  });
}

/** What `install.public_url` spoke for until there was another listener, and has no address now. */
export function listenerWarnings(config: Config): string[] {
  const { boot, bmc, install } = config;
  const urls = publicUrlsOf(config);
  const unsaid = install.publicUrl !== null && boot.listen !== null;
  return [
    ...(urls.bmc === null && (unsaid || bmc.listen !== null)
      ? [
          `${bmc.listen === null ? "boot.listen" : "bmc.listen"} is set and bmc.public_url is not: BMCs are given no media, and firmware is pushed to them`,
        ]
      : []),
    ...(urls.fleet === null && unsaid
      ? [
          "boot.listen is set and fleet.public_url is not: install.public_url names boot.listen, where no agents are served, so that fleet nodes are given no bootstrap",
        ]
      : []),
  ];
}
