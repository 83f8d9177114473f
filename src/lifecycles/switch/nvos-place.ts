import { type CredentialPlace, placeAsReported, placeOfBmc } from "../../capabilities/credential-place.ts";
import type { Switch } from "./switch.ts";

/** An address of NVOS may name the port; otherwise NVOS and the BMC answer at the same one, which is 443 nearly everywhere. */
export function nvosEndpointOf(text: string, bmcPort: number): { readonly address: string; readonly port: number } {
  const [, host, port] = /^\[?([^\]]+?)\]?(?::(\d{1,5}))?$/.exec(text) ?? [];
  const isIpv6 = text.split(":").length > 2 && !text.startsWith("[");
  return { address: isIpv6 ? text : (host ?? text), port: port === undefined || isIpv6 ? bmcPort : Number(port) };
}

/** Where the password of NVOS is for: the address that people set, or whichever the BMC reports. */
export function nvosPlaceOf(
  given: string | null,
  { port, scheme, trust }: Pick<Switch["bmc"], "port" | "scheme" | "trust">,
): CredentialPlace {
  const bmc = { port, scheme, trust };
  return given === null ? placeAsReported(bmc) : placeOfBmc({ ...bmc, ...nvosEndpointOf(given, port) });
}
