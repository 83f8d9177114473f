import type { DescFile } from "@bufbuild/protobuf";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import { ServerReflection } from "../../../contract/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../contract/grpc/reflection/v1alpha/reflection_pb.js";
import { DescriptorIndex } from "./descriptor-index.ts";

/**
 * Server reflection for all services of the router, itself included: v1, and v1alpha for clients that know only that.
 *
 * The router is read when the first question comes, so the order of registration does not matter.
 */
export function reflectionRoutes(router: ConnectRouter): void {
  let known: DescriptorIndex | undefined;
  const index = () => {
    known ??= new DescriptorIndex(router.handlers.map(({ service }) => service));
    return known;
  };

  router.service(ServerReflection, { serverReflectionInfo: (requests) => answerAll(index, requests) });
  router.service(ServerReflectionAlpha, { serverReflectionInfo: (requests) => answerAll(index, requests) });
}

/** The two versions differ in the name of their package alone. */
async function* answerAll<R extends { readonly host: string; readonly messageRequest: Question }>(
  index: () => DescriptorIndex,
  requests: AsyncIterable<R>,
) {
  const sent = new Set<DescFile>();
  for await (const request of requests) {
    const { host, messageRequest } = request;
    yield { validHost: host, originalRequest: request, messageResponse: answer(index(), messageRequest, sent) };
  }
}

/** What both versions ask. */
type Question =
  | {
      readonly case: "fileByFilename" | "fileContainingSymbol" | "allExtensionNumbersOfType" | "listServices";
      readonly value: string;
    }
  | {
      readonly case: "fileContainingExtension";
      readonly value: { readonly containingType: string; readonly extensionNumber: number };
    }
  | { readonly case: undefined };

type Answer =
  | { case: "fileDescriptorResponse"; value: { fileDescriptorProto: Uint8Array[] } }
  | { case: "allExtensionNumbersResponse"; value: { baseTypeName: string; extensionNumber: number[] } }
  | { case: "listServicesResponse"; value: { service: { name: string }[] } }
  | { case: "errorResponse"; value: { errorCode: number; errorMessage: string } };

/** `sent` are the files that the client already has from this stream. */
function answer(index: DescriptorIndex, question: Question, sent: Set<DescFile>): Answer {
  const files = (file: DescFile | undefined, wanted: string): Answer =>
    file === undefined ? failure(Code.NotFound, `${wanted} is not known here`) : filesFrom(index, file, sent);

  switch (question.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: index.serviceNames.map((name) => ({ name })) } };
    case "fileByFilename":
      return files(index.fileNamed(question.value), `file ${question.value}`);
    case "fileContainingSymbol":
      return files(index.fileDeclaring(question.value), `symbol ${question.value}`);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = question.value;
      return files(
        index.fileExtending(containingType, extensionNumber),
        `extension ${extensionNumber} of ${containingType}`,
      );
    }
    case "allExtensionNumbersOfType": {
      const numbers = index.extensionNumbers(question.value);
      if (numbers === undefined) return failure(Code.NotFound, `message ${question.value} is not known here`);
      return {
        case: "allExtensionNumbersResponse",
        value: { baseTypeName: question.value, extensionNumber: [...numbers] },
      };
    }
    case undefined:
      return failure(
        Code.InvalidArgument,
        "message_request is required: ask for a file, a symbol, an extension or the services",
      );
  }
}

/** The file and what it needs. The file itself always: who asks for it again has a reason. */
function filesFrom(index: DescriptorIndex, file: DescFile, sent: Set<DescFile>): Answer {
  sent.delete(file);
  const found: Uint8Array[] = [];
  const pending = [file];
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    if (sent.has(next)) continue;
    sent.add(next);
    found.push(index.serialised(next));
    pending.push(...next.dependencies);
  }
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto: found } };
}

const failure = (code: Code, message: string): Answer => ({
  case: "errorResponse",
  value: { errorCode: code, errorMessage: message },
});
