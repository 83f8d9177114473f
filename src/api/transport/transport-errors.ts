import { create, type DescField, type DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../../contract/millwright/v1/error_info_pb.js";
import { ERROR_KINDS } from "../../kernel/errors.ts";
import { ERROR_CODES } from "./error-codes.ts";

const UNPARSED = "parse binary: ";
const TOO_LARGE = /readMaxBytes (\d+)/;
const WRONG_ENUM = /^cannot decode enum (\S+) from JSON/;
const WRONG_VALUE = /^cannot decode (?:field|oneof) (\S+)\.([^\s.]+) from JSON/;
const UNKNOWN_KEY = /^cannot decode message (\S+) from JSON: key "(.*)" is unknown$/s;

/**
 * Gives errors that arise before any interceptor the code, text and detail that callers can act on.
 *
 * Connect blames the server for a binary message that it cannot parse, speaks of its own options where a message is too large,
 * and does not say which field has the wrong word. It offers no hook there, but it ends the call with the error before it writes
 * it: the one place to put it right for gRPC, gRPC-Web and Connect alike.
 */
export function correctTransportError(reason: unknown, input: DescMessage): void {
  // What we made ourselves has its detail, and its text is right.
  if (!(reason instanceof ConnectError) || reason.details.length > 0) return;
  const { field = "", ...corrected } = correctionOf(reason, input);
  const error: { code: Code; rawMessage: string } = Object.assign(reason, corrected);
  const kind = ERROR_KINDS.find((each) => ERROR_CODES[each].grpc === error.code);
  if (kind === undefined) return;
  reason.details.push({ desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { kind, field: shortened(field) }) });
}

interface Correction {
  readonly code?: Code;
  readonly rawMessage?: string;
  readonly field?: string;
}

function correctionOf({ code, rawMessage }: ConnectError, input: DescMessage): Correction {
  if (code === Code.Internal && rawMessage.startsWith(UNPARSED)) {
    const why = rawMessage.slice(UNPARSED.length);
    return {
      code: Code.InvalidArgument,
      rawMessage: `the request is not a valid protobuf message ${input.typeName}: ${why}`,
    };
  }
  if (code === Code.ResourceExhausted) {
    const limit = TOO_LARGE.exec(rawMessage)?.[1];
    if (limit === undefined) return {};
    return { rawMessage: `the request message is larger than the limit of ${limit} bytes; split the request` };
  }
  return code === Code.InvalidArgument ? correctDecoding(rawMessage, input) : {};
}

/** Connect names types; a caller thinks in paths from the request. */
function correctDecoding(rawMessage: string, input: DescMessage): Correction {
  const enumName = WRONG_ENUM.exec(rawMessage)?.[1];
  if (enumName !== undefined) return correctWrongEnum(enumName, input);
  const [, typeName, name] = UNKNOWN_KEY.exec(rawMessage) ?? WRONG_VALUE.exec(rawMessage) ?? [];
  return typeName === undefined || name === undefined ? {} : { field: pathOf(typeName, name, input) };
}

function correctWrongEnum(enumName: string, input: DescMessage): Correction {
  const uses = [...fieldsOf(input, "", new Set())].flatMap(([path, field]) => {
    const found = field.enum;
    return found?.typeName === enumName ? [{ path, found }] : [];
  });
  const [first] = uses;
  if (first === undefined) return {};
  const words = first.found.values.map(({ name }) => name).join(", ");
  const rawMessage = `${uses.map(({ path }) => path).join(" or ")} must be one of ${words}`;
  return uses.length === 1 ? { rawMessage, field: first.path } : { rawMessage };
}

/** The bare name where the message occurs in several places, and none of them can be told to be the one. */
function pathOf(typeName: string, name: string, input: DescMessage): string {
  if (typeName === input.typeName) return name;
  const [first, ...others] = [...fieldsOf(input, "", new Set())].flatMap(([path, field]) =>
    field.message?.typeName === typeName ? [path] : [],
  );
  return first === undefined || others.length > 0 ? name : `${first}.${name}`;
}

/** A key may be as long as a request, and is the caller's own text. */
const shortened = (field: string): string => field.slice(0, 200).toWellFormed();

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
