import type { DescService, Message } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { refuseUnstorableText } from "../convert/storable-text.ts";

type Method = (request: Message, context: HandlerContext) => unknown;

/** Registers a service; what no method could keep is refused before any of them runs. For methods of one request each. */
export function serve<S extends DescService>(router: ConnectRouter, service: S, implementation: ServiceImpl<S>): void {
  const methods = Object.entries(implementation as Readonly<Record<string, Method>>);
  const checked = methods.map(([name, call]): [string, Method] => {
    const { input } = service.method[name] ?? {};
    if (input === undefined) throw new Error(`${service.typeName} has no method ${name}`);
    const checkAndCall: Method = (request, context) => {
      refuseUnstorableText(input, request);
      return call(request, context);
    };
    return [name, checkAndCall];
  });
  router.service(service, Object.fromEntries(checked) as ServiceImpl<S>);
}
