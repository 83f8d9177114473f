import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure, isSilence } from "../../capabilities/device-failure.ts";
import type { Maas, MaasTarget } from "../../capabilities/fleet/maas.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import { milliseconds, seconds } from "../../kernel/time/duration.ts";
import { type FleetSite, getApiKey } from "../../store/fleet/sites.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { refusal } from "../catalog/entries.ts";

/** How MAAS regions are reached, and keys read. */
export interface MaasGate extends Maas {
  /** @throws AppError invalid_argument */
  checkKey(apiKey: string): void;
}

const LONGEST = seconds(20);
const DEFAULT_PORTS = { http: 80, https: 443 } as const;

/** Where the region of a site is: `http://10.0.0.5:5240/MAAS`. */
export function placeOfUrl(text: string): Omit<MaasTarget, "apiKey"> & { readonly url: string } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const scheme = url?.protocol === "https:" ? "https" : url?.protocol === "http:" ? "http" : undefined;
  if (!url || !scheme || url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    throw refusal("url", "must be the http or https address of MAAS, such as https://maas.example.com:5443/MAAS");
  const path = url.pathname.replace(/\/+$/, "").replace(/\/api\/2\.0$/, "");
  return {
    address: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? DEFAULT_PORTS[scheme] : Number(url.port),
    scheme,
    path,
    trust: { mode: "ca" },
    url: `${url.origin}${path}`,
  };
}

export async function targetOfSite(deps: ServiceDeps, site: FleetSite): Promise<MaasTarget> {
  const apiKey = await getApiKey(deps.db, deps.secrets, site);
  if (apiKey === undefined)
    throw new AppError("failed_precondition", `no API key for ${site.url} is on record for fleet site ${site.name}`, {
      next: `millwright fleet site update ${site.name} --api-key-file <file>`,
    });
  const { url: _, ...place } = placeOfUrl(site.url);
  return { ...place, apiKey };
}

export function maasOf({ maas }: ServiceDeps): MaasGate {
  if (!maas) throw new AppError("unsupported", "this server calls no MAAS");
  return maas;
}

/** For calls that a caller waits for. */
export const callOf = (subject: string): CallContext => ({
  signal: AbortSignal.timeout(LONGEST),
  subject,
  mayTouchDevice: (wanted) => milliseconds(Math.min(wanted, LONGEST)),
});

/** What a call to MAAS failed of, as the caller's error. `ifSilent` is what helps where MAAS does not answer. */
export async function asCallerError<T>(field: string, work: () => Promise<T>, ifSilent = ""): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof DeviceFailure || error instanceof StepFailure)) throw error;
    const hint = isSilence(error) ? ifSilent : "";
    throw new AppError("failed_precondition", `${field}: ${error.message}${hint}`, { field });
  }
}
