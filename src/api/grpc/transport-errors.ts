import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";

const UNPARSED = "parse binary: ";
const TOO_LARGE = /readMaxBytes (\d+)/;
const WRONG_ENUM = /^cannot decode enum (\S+) from JSON/;

/**
 * Gives errors that arise before any interceptor the code and text that callers can act on.
 *
 * Connect blames the server for a binary message that it cannot parse, speaks of its own options where a message is too large,
 * and does not say which field has the wrong word. It offers no hook there, but it ends the call with the error before it writes
 * it: the one place to put it right for gRPC, gRPC-Web and Connect alike.
 */
export function correctTransportError(reason: unknown, input: DescMessage): void {
  if (!(reason instanceof ConnectError)) return;
  const error: { code: Code; rawMessage: string } = reason;
  const { code, rawMessage } = error;
  if (code === Code.Internal && rawMessage.startsWith(UNPARSED)) {
    error.code = Code.InvalidArgument;
    error.rawMessage = `the request is not a valid protobuf message ${input.typeName}: ${rawMessage.slice(UNPARSED.length)}`;
  } else if (code === Code.ResourceExhausted) {
    const limit = TOO_LARGE.exec(rawMessage)?.[1];
    if (limit !== undefined)
      error.rawMessage = `the request message is larger than the limit of ${limit} bytes; split the request`;
  } else if (code === Code.InvalidArgument) {
    const enumName = WRONG_ENUM.exec(rawMessage)?.[1];
    if (enumName !== undefined) error.rawMessage = describeWrongEnum(enumName, input) ?? rawMessage;
  }
}

function describeWrongEnum(enumName: string, input: DescMessage): string | undefined {
  const uses = [...fieldsOf(input, "", new Set())].flatMap(([path, field]) => {
    const found = field.enum;
    return found?.typeName === enumName ? [{ path, found }] : [];
  });
  const [first] = uses;
  if (first === undefined) return undefined;
  const words = first.found.values.map(({ name }) => name).join(", ");
  return `${uses.map(({ path }) => path).join(" or ")} must be one of ${words}`;
}

/** Every field below a message, with its path; a message inside itself is entered once. */
function* fieldsOf(message: DescMessage, prefix: string, entered: Set<DescMessage>): Generator<[string, DescField]> {
  if (entered.has(message)) return;
  entered.add(message);
  for (const field of message.fields) {
    const path = `${prefix}${field.name}`;
    yield [path, field];
    if (field.message !== undefined) yield* fieldsOf(field.message, `${path}.`, entered);
  }
  entered.delete(message);
}
