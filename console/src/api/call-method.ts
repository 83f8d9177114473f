import type { DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { transport } from "./transport.ts";

/** Any method of the contract by its description: for actions, which are data. */
export async function callMethod<M extends DescMethodUnary>(
  method: M,
  request: MessageInitShape<M["input"]>,
): Promise<MessageShape<M["output"]>> {
  const { message } = await transport.unary(method, undefined, undefined, undefined, request);
  return message as MessageShape<M["output"]>;
}

/** A key that makes a call safe to repeat. `crypto.randomUUID` is for pages alone that came over a way that browsers trust. */
export const newRequestId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
