import { type DescFile, type DescService, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Forge, file_forge_forge } from "../../../contract/forge/forge_pb.js";
import { ServerReflection, type ServerReflectionRequest } from "../../../contract/grpc/reflection/v1/reflection_pb.js";
import { reflectionRoutes } from "./reflection.ts";

type Question = Exclude<
  ServerReflectionRequest["messageRequest"],
  { case: "fileContainingExtension" } | { case: undefined }
>;

/** Asks all questions on one stream; answers are file names, or what came instead. */
async function ask(
  services: readonly DescService[],
  ...questions: readonly (
    | Question
    | { case: "fileContainingExtension"; value: { containingType: string; extensionNumber: number } }
    | { case: undefined }
  )[]
) {
  const transport = createRouterTransport((router) => {
    reflectionRoutes(router);
    for (const service of services) router.service(service, {});
  });
  async function* requests() {
    for (const messageRequest of questions) yield { host: "here", messageRequest };
  }
  const answers: unknown[] = [];
  for await (const { messageResponse, originalRequest, validHost } of createClient(
    ServerReflection,
    transport,
  ).serverReflectionInfo(requests())) {
    expect([validHost, originalRequest?.messageRequest.case]).toEqual(["here", questions[answers.length]?.case]);
    answers.push(
      messageResponse.case === "fileDescriptorResponse"
        ? messageResponse.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name)
        : messageResponse.value,
    );
  }
  return answers;
}

const refused = (errorCode: Code) => expect.objectContaining({ errorCode });

test("lists every service once, also those registered after it", async () => {
  const [answer] = await ask([Forge], { case: "listServices", value: "*" });
  expect(answer).toMatchObject({
    service: [
      { name: "forge.Forge" },
      { name: "grpc.reflection.v1.ServerReflection" },
      { name: "grpc.reflection.v1alpha.ServerReflection" },
    ],
  });
});

test("sends a file with all it imports, and later only what the stream has not brought yet", async () => {
  const [first, again, other] = await ask(
    [Forge],
    { case: "fileContainingSymbol", value: "forge.Forge" },
    { case: "fileByFilename", value: "forge/forge.proto" },
    { case: "fileByFilename", value: "health/health.proto" },
  );
  const sent = first as readonly string[];
  expect(sent[0]).toBe("forge/forge.proto");
  expect(sent.toSorted()).toEqual([...namesOfAll(file_forge_forge)].toSorted());
  expect([again, other]).toEqual([["forge/forge.proto"], ["health/health.proto"]]);
});

test.each([
  ["a method", "forge.Forge.DeletePowerShelf", "forge/forge.proto"],
  ["a message of an imported file", "common.PowerShelfId", "common/common.proto"],
  ["a field", "forge.PowerShelf.rack_id", "forge/forge.proto"],
  ["an enum", "forge.DeletedFilter", "forge/shared.proto"],
  ["an enum value, which lives beside its enum", "forge.DELETED_FILTER_ONLY", "forge/shared.proto"],
])("finds the file of %s", async (_, symbol, file) => {
  const [answer] = await ask([Forge], { case: "fileContainingSymbol", value: symbol });
  expect(answer).toEqual(expect.arrayContaining([file]));
});

test("answers what it does not know with an error, and goes on", async () => {
  const answers = await ask(
    [Forge],
    { case: "fileContainingSymbol", value: "forge.Nothing" },
    { case: "fileByFilename", value: "nothing.proto" },
    { case: "fileContainingExtension", value: { containingType: "forge.PowerShelf", extensionNumber: 1 } },
    { case: "allExtensionNumbersOfType", value: "forge.Nothing" },
    { case: undefined },
    { case: "allExtensionNumbersOfType", value: "forge.PowerShelf" },
  );
  const { NotFound, InvalidArgument } = Code;
  expect(answers).toEqual([
    refused(NotFound),
    refused(NotFound),
    refused(NotFound),
    refused(NotFound),
    refused(InvalidArgument),
    expect.objectContaining({ baseTypeName: "forge.PowerShelf", extensionNumber: [] }),
  ]);
});

/** The file and all that it imports, directly or not. */
function namesOfAll(file: DescFile): ReadonlySet<string> {
  return new Set([file.proto.name, ...file.dependencies.flatMap((one) => [...namesOfAll(one)])]);
}
