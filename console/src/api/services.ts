import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { transport } from "./transport.ts";

const clients = new Map<string, unknown>();

/** The client of a service of the contract. Pages import the services that they use, so that each loads with its page alone. */
export function clientOf<S extends DescService>(service: S): Client<S> {
  const found = (clients.get(service.typeName) ?? createClient(service, transport)) as Client<S>;
  clients.set(service.typeName, found);
  return found;
}
