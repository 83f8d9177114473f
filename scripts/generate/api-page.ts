import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  type FileDescriptorProto,
  FileDescriptorSetSchema,
  type ServiceDescriptorProto,
} from "@bufbuild/protobuf/wkt";
import { expandRoles, ROLES, type Role } from "../../src/services/call/roles.ts";
import { access } from "../../src/wiring/things/all-things.ts";
import { runTool } from "../run-tool.ts";
import { subsetOf } from "./contract-subset.ts";
import { anchor, code, page, pageHead, table } from "./markdown.ts";
import { type CommentOf, commentsOf, PATHS } from "./proto-comments.ts";
import { servedServices } from "./served-services.ts";

/** In the details of errors, where no method names it. */
const ERROR_INFO = "millwright.v1.ErrorInfo";

/** Every service that is served, with its methods and messages and what the `.proto` files say about them. */
export async function apiPage(): Promise<string> {
  const contracts = (await readContracts()).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const documented = subsetOf(contracts, { services: servedServices(), messages: [ERROR_INFO] });
  const files = contracts.filter((file) => isDocumented(file, documented));
  const packages = [...new Set(files.map((file) => file.package))].toSorted((a, b) => rank(a) - rank(b));
  return page(
    pageHead("API", "the contracts in `proto/` and `src/wiring/routes.ts`"),
    "All services are on both ports: gRPC on the one, and Connect, gRPC-Web and JSON (`POST /package.Service/Method` with `content-type: application/json`) on the other. Reflection is on, so that any gRPC client can find all of this by itself.",
    'JSON answers follow protobuf\'s JSON mapping: fields are named in camelCase (`planId` for `plan_id`; requests may use either), what is false, 0, empty or absent is left out, 64-bit numbers are text, bytes are base64, and enums are their names. (`millwright … -o json` prints every field, always, by its name in the tables below.) Errors are `{"code", "message", "details"}` with the HTTP status of the code; a request that is no call at all (another method than POST, another media type) is answered so, too, with 405 or 415. Streams are framed (`application/connect+json`): use a client of Connect or gRPC for them.',
    services(
      packages.flatMap((name) => files.filter((file) => file.package === name)),
      documented,
    ),
    "## Roles",
    table(["Role", "Carries"], ROLES.map(roleRow)),
    packages.flatMap((name) => [
      `## Package ${code(name)}`,
      ...files.filter((file) => file.package === name).flatMap((file) => describeFile(file, documented)),
    ]),
    "## Other routes",
    routes(),
  );
}

/** What readers come for first; what all the world shares last. */
const ORDER = ["millwright.v1", "forge", "common", "health"];
const rank = (name: string): number => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);

function isDocumented(file: FileDescriptorProto, documented: ReadonlySet<string>): boolean {
  return [...file.service, ...file.messageType, ...file.enumType].some(({ name }) =>
    documented.has(`${file.package}.${name}`),
  );
}

function services(files: readonly FileDescriptorProto[], documented: ReadonlySet<string>): string {
  const rows = files.flatMap((file) => {
    const comment = commentsOf(file);
    return file.service.flatMap(({ name }, at) => {
      const fullName = `${file.package}.${name}`;
      return documented.has(fullName) ? [[`[${code(fullName)}](${anchor(fullName)})`, comment(PATHS.service, at)]] : [];
    });
  });
  return table(["Service", "What it is for"], rows);
}

function roleRow(role: Role): string[] {
  const carried = [...expandRoles([role])].filter((each) => each !== role);
  return [code(role), carried.length === 0 ? "–" : carried.map(code).join(", ")];
}

/** Built anew, since the generated code holds no comments. Contracts of others, which everybody has, are left out. */
async function readContracts(): Promise<FileDescriptorProto[]> {
  const scratch = await mkdtemp(join(tmpdir(), "millwright-api-"));
  try {
    const image = join(scratch, "image.binpb");
    const args = ["build", "proto", "--as-file-descriptor-set", "--exclude-imports", "--output", image];
    const { code: exit, output } = await runTool("buf", args, { BUF_CACHE_DIR: scratch });
    if (exit !== 0) throw new Error(`buf ${args.join(" ")} ended with code ${exit}: ${output}`);
    return fromBinary(FileDescriptorSetSchema, await readFile(image)).file;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function describeFile(file: FileDescriptorProto, documented: ReadonlySet<string>): string[] {
  const comment = commentsOf(file);
  const link = linkTo(documented);
  const reading = { file, comment, link, documented };
  return [
    comment(PATHS.package),
    ...file.service.flatMap((service, at) => describeService(service, [PATHS.service, at], reading)),
    ...file.messageType.flatMap((message, at) => describeMessage(message, file.package, [PATHS.message, at], reading)),
    ...file.enumType.flatMap((type, at) => describeEnum(type, file.package, [PATHS.enum, at], reading)),
  ];
}

interface Reading {
  readonly file: FileDescriptorProto;
  readonly comment: CommentOf;
  readonly link: (typeName: string) => string;
  /** Full names; what is not among them is left out. */
  readonly documented: ReadonlySet<string>;
}

const linkTo = (documented: ReadonlySet<string>) => (typeName: string) => {
  const name = typeName.replace(/^\./, "");
  return documented.has(name) ? `[${code(name)}](${anchor(name)})` : code(name);
};

function describeService(service: ServiceDescriptorProto, path: number[], reading: Reading): string[] {
  const { file, comment, link } = reading;
  const fullName = `${file.package}.${service.name}`;
  if (!reading.documented.has(fullName)) return [];
  const rows = service.method.map((method, at) => [
    code(method.name),
    `${method.clientStreaming ? "stream of " : ""}${link(method.inputType)}`,
    `${method.serverStreaming ? "stream of " : ""}${link(method.outputType)}`,
    rolesOf(`${fullName}/${method.name}`),
    comment(...path, PATHS.method, at),
  ]);
  return [`### ${fullName}`, comment(...path), table(["Method", "Request", "Answer", "Roles", "What it does"], rows)];
}

const rolesOf = (method: string): string => {
  const allowed = access.allowedFor(method);
  if (allowed === "anyone") return "anyone";
  const ofFields = access.fieldsOf(method).map((field) => `; with ${code(field)}: ${rolesOf(`${method} ${field}`)}`);
  return (allowed.length === 0 ? "nobody" : allowed.map(code).join(", ")) + ofFields.join("");
};

function describeMessage(message: DescriptorProto, scope: string, path: number[], reading: Reading): string[] {
  if (message.options?.mapEntry) return [];
  const fullName = `${scope}.${message.name}`;
  const { comment, documented } = reading;
  const nested = [
    ...message.nestedType.flatMap((inner, at) =>
      describeMessage(inner, fullName, [...path, PATHS.nestedMessage, at], reading),
    ),
    ...message.enumType.flatMap((type, at) => describeEnum(type, fullName, [...path, PATHS.nestedEnum, at], reading)),
  ];
  if (!documented.has(fullName)) return nested;
  const rows = message.field.map((field, at) => [
    String(field.number),
    code(field.name),
    typeOf(field, message, reading.link),
    [oneofOf(field, message), comment(...path, PATHS.field, at)].filter((text) => text !== "").join(" "),
  ]);
  return [
    `### ${fullName}`,
    comment(...path),
    rows.length === 0 ? "It has no fields." : table(["No.", "Field", "Type", "Meaning"], rows),
    ...nested,
  ];
}

function typeOf(field: FieldDescriptorProto, message: DescriptorProto, link: Reading["link"]): string {
  const named = (one: FieldDescriptorProto): string =>
    one.typeName !== "" ? link(one.typeName) : code(FieldDescriptorProto_Type[one.type].toLowerCase());
  const entry = message.nestedType.find(
    (nested) => nested.options?.mapEntry && field.typeName.endsWith(`.${message.name}.${nested.name}`),
  );
  const [key, value] = entry?.field ?? [];
  if (key && value) return `map of ${named(key)} to ${named(value)}`;
  if (field.label === FieldDescriptorProto_Label.REPEATED) return `repeated ${named(field)}`;
  return field.proto3Optional ? `optional ${named(field)}` : named(field);
}

function oneofOf(field: FieldDescriptorProto, message: DescriptorProto): string {
  // An unset index reads as 0, which is also the first oneof's: only what is in the message tells them apart.
  if (field.proto3Optional || !Object.hasOwn(field, "oneofIndex")) return "";
  const name = message.oneofDecl[field.oneofIndex]?.name;
  return name === undefined ? "" : `One of ${code(name)}.`;
}

function describeEnum(type: EnumDescriptorProto, scope: string, path: number[], reading: Reading): string[] {
  const { comment, documented } = reading;
  if (!documented.has(`${scope}.${type.name}`)) return [];
  const rows = type.value.map((value, at) => [
    String(value.number),
    code(value.name),
    comment(...path, PATHS.value, at),
  ]);
  return [`### ${scope}.${type.name}`, comment(...path), table(["No.", "Value", "Meaning"], rows)];
}

function routes(): string {
  const paths = access.methods.filter((method) => method.includes(" "));
  return table(
    ["Route", "Roles"],
    paths.map((route) => [code(route), rolesOf(route)]),
  );
}
