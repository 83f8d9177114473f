const DEFAULT_PORT = 443;

/** `host` or `host:port`, as it can be handed in again; empty when it is not known. */
export function endpointText({
  address,
  port,
}: {
  readonly address: string | null;
  readonly port: number | null;
}): string {
  if (address === null) return "";
  if (port === null || port === DEFAULT_PORT) return address;
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
