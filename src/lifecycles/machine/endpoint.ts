import { isIP } from "node:net";
import { type CredentialPlace, NOWHERE, placeOfBmc, placeOfSsh } from "../../capabilities/credential-place.ts";
import { AppError } from "../../kernel/errors.ts";
import type { BmcProtocol, Machine, MachineBmc, MachineSpec } from "./machine.ts";

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;

/** A name or an address, without a port. */
export const isHost = (text: string): boolean => isIP(text) !== 0 || HOST_NAME.test(text);

export interface Endpoint {
  readonly address: string;
  /** Null when none was given: the usual one is meant. */
  readonly port: number | null;
}

/** `host`, `host:port`, `[v6]` or `[v6]:port`. */
export function parseEndpoint(text: string, field: string): Endpoint {
  const [, bracketed, plain, portText] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? [
    undefined,
    undefined,
    isIP(text) === 6 ? text : undefined,
  ];
  const address = bracketed ?? plain;
  const port = portText === undefined ? null : Number(portText);
  const isGiven = address !== undefined && (bracketed === undefined ? isHost(address) : isIP(address) !== 0);
  if (!isGiven || (port !== null && (port < 1 || port > 65_535))) {
    throw refusal(text, field, "is not a host or host:port (like 10.0.0.7 or bmc-7.example:8443)");
  }
  return { address, port };
}

/** What stands before an @ may be a password: answers and logs do not repeat it. */
function refusal(text: string, field: string, why: string): AppError {
  const shown = text.replace(/^(\w+:\/\/)?.*@/s, "$1…@").slice(0, 80);
  const signIn = text.includes("@") ? "; an endpoint holds no user name or password: set those as credentials" : "";
  return new AppError("invalid_argument", `${field}: ${JSON.stringify(shown)} ${why}${signIn}`, { field });
}

/** An endpoint, which may begin with the scheme; https unless it does. */
export function parseBmcAddress(text: string, field: string): Pick<MachineBmc, "address" | "port" | "scheme" | "path"> {
  const [, scheme, rest = text] = /^(https?):\/\/([^/]*)\/?$/i.exec(text) ?? [];
  return { ...parseEndpoint(rest, field), scheme: scheme?.toLowerCase() === "http" ? "http" : "https" };
}

const NODE_PATH = /^(?:\/[A-Za-z0-9._~-]+)*\/v1\/nodes\/[A-Za-z0-9._~-]+$/;

/** A machine in the care of Ironic is where its node is: one address for all of them, and a path of its own for each. */
function parseNodeAddress(text: string, field: string): ReturnType<typeof parseBmcAddress> {
  const [, server = "", path = ""] = /^((?:https?:\/\/)?[^/]*)(\/[^?#]*?)\/?$/i.exec(text) ?? [];
  if (text.length <= 400 && NODE_PATH.test(path)) return { ...parseBmcAddress(server, field), path };
  const node = "https://ironic.example:6385/v1/nodes/NODE, with the node's UUID or name";
  throw refusal(text, field, `is not the address of a node in Ironic (like ${node})`);
}

/** The computer systems of a Redfish service, as the standard places them. */
const SYSTEMS_PATH = "/redfish/v1/Systems";
const SYSTEM_PATH = /^((?:https?:\/\/)?[^/]*)\/redfish\/v1\/Systems\/([A-Za-z0-9._~:-]{1,128})\/?$/i;

/** A BMC; where several machines stand behind it, with the path of the one that is meant. */
function parseSystemAddress(text: string, field: string): ReturnType<typeof parseBmcAddress> {
  const [, server, system] = (text.length <= 400 && SYSTEM_PATH.exec(text)) || [];
  if (server === undefined || system === undefined) return parseBmcAddress(text, field);
  return { ...parseBmcAddress(server, field), path: `${SYSTEMS_PATH}/${system}` };
}

/** Where a machine is worked on from outside: at its BMC, or at the service that has it in its care. */
export const parseMachineAddress = (
  provider: string,
  text: string,
  field: string,
): ReturnType<typeof parseBmcAddress> => (provider === "ironic" ? parseNodeAddress : parseSystemAddress)(text, field);

const USUAL_PORTS = { https: 443, http: 80 } as const;
const IPMI_PORT = 623;

/** Where the BMC listens. */
export function bmcPortOf({
  port,
  protocol,
  scheme,
}: Pick<MachineBmc, "port" | "scheme"> & { readonly protocol: BmcProtocol | null }): number {
  return port ?? (protocol === "ipmi" ? IPMI_PORT : USUAL_PORTS[scheme]);
}

/** What the BMC of a machine speaks: what its owner says, else what its provider prefers. */
export function bmcProtocolOf({
  provider,
  bmc,
}: Pick<MachineSpec, "provider"> & { readonly bmc: Pick<MachineBmc, "protocol"> | null }): BmcProtocol {
  return bmc?.protocol ?? (provider === "ipmi" ? "ipmi" : "redfish");
}

/** Where credentials of its BMC are sent, over whatever it speaks. */
export function bmcPlaceOf({ spec }: Pick<Machine, "spec">): CredentialPlace {
  const { bmc, provider } = spec;
  if (bmc === null) return NOWHERE;
  const protocol = bmcProtocolOf(spec);
  // A node of Ironic is reached over HTTP whatever its BMC speaks.
  const isIpmi = protocol === "ipmi" && provider !== "ironic";
  return placeOfBmc({ ...bmc, port: bmcPortOf({ ...bmc, protocol }), isIpmi });
}

/** Where its owner says that its system is. Where a run has moved it from there, its host key has proved that it is the same one. */
export const sshPlaceOf = ({ spec: { ssh } }: Pick<Machine, "spec">): CredentialPlace =>
  ssh === null ? NOWHERE : placeOfSsh(ssh);

export const SSH_PORT = 22;
