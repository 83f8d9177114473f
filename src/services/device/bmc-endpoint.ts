import { parseEndpoint } from "../../lifecycles/machine/endpoint.ts";

const DEFAULT_PORT = 443;

/** `host`, `host:port`, `[v6]` or `[v6]:port`. */
export function parseBmcEndpoint(text: string, field: string): { readonly address: string; readonly port: number } {
  const { address, port } = parseEndpoint(text, field);
  return { address, port: port ?? DEFAULT_PORT };
}
