import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { refuseUnstorableText } from "../convert/storable-text.ts";

export type Router = ConnectRouter;
type Method = (request: Message, context: HandlerContext) => unknown;

/** Some or all methods of one service. Several things may share a service: `forge.Forge` serves shelves, racks and switches. */
export interface ServicePart {
  readonly service: DescService;
  readonly methods: Readonly<Record<string, Method>>;
  /** Bytes of a request at most, by method, where that is less than every method takes. */
  readonly largest?: Readonly<Record<string, number>>;
}

export const partOf = <S extends DescService>(
  service: S,
  methods: Partial<ServiceImpl<S>>,
  largest: { readonly [method in keyof ServiceImpl<S>]?: number } = {},
): ServicePart => ({
  service,
  methods: methods as Readonly<Record<string, Method>>,
  largest: largest as Readonly<Record<string, number>>,
});

/**
 * Registers every service that a part names. All methods of such a service must come from exactly one part: a missing one is a
 * mistake here and not an answer that a caller gets.
 */
export function serveParts(router: Router, parts: readonly ServicePart[]): void {
  for (const [service, ofOne] of Map.groupBy(parts, (part) => part.service)) {
    const largest: Record<string, number> = Object.assign({}, ...ofOne.map((part) => part.largest));
    for (const [name, call] of methodsOf(service, ofOne)) {
      const readMaxBytes = largest[name];
      router.rpc(
        service.method[name] as DescMethod,
        call as never,
        readMaxBytes === undefined ? undefined : { readMaxBytes },
      );
    }
  }
}

function methodsOf(service: DescService, parts: readonly ServicePart[]): ReadonlyMap<string, Method> {
  const methods = new Map<string, Method>();
  for (const [name, call] of parts.flatMap((part) => Object.entries(part.methods))) {
    const { input } = service.method[name] ?? {};
    if (input === undefined) throw new Error(`${service.typeName} has no method ${name}`);
    if (methods.has(name)) throw new Error(`${service.typeName}/${name} is served twice`);
    methods.set(name, (request, context) => {
      // Before any method runs: no method could keep such a text. For methods of one request each.
      refuseUnstorableText(input, request);
      return call(request, context);
    });
  }
  const missing = Object.keys(service.method).find((name) => !methods.has(name));
  if (missing !== undefined) throw new Error(`${service.typeName}/${missing} is served by nothing`);
  return methods;
}
