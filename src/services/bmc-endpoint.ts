import { isIP } from "node:net";
import { AppError } from "../kernel/errors.ts";

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;
const DEFAULT_PORT = 443;

/** `host`, `host:port`, `[v6]` or `[v6]:port`. */
export function parseBmcEndpoint(text: string, field: string): { readonly address: string; readonly port: number } {
  const [, bracketed, plain, portText] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? [
    undefined,
    undefined,
    isIP(text) === 6 ? text : undefined,
  ];
  const address = bracketed ?? plain;
  const port = portText === undefined ? DEFAULT_PORT : Number(portText);
  const isHost = address !== undefined && (isIP(address) !== 0 || (bracketed === undefined && HOST_NAME.test(address)));
  if (!isHost || port < 1 || port > 65_535) {
    throw new AppError(
      "invalid_argument",
      `${field}: ${JSON.stringify(text.slice(0, 80))} is not a host or host:port (like 10.0.0.7 or bmc-7.example:8443)`,
      { field },
    );
  }
  return { address, port };
}
