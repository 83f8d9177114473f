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
import { allowedFor, METHOD_ROLES } from "../../src/api/auth/roles.ts";
import { expandRoles, ROLES, type Role } from "../../src/services/roles.ts";
import { runTool } from "../run-tool.ts";
import { anchor, code, page, pageHead, table } from "./markdown.ts";
import { type CommentOf, commentsOf, PATHS } from "./proto-comments.ts";

/** Every service, method and message of the contracts, with what the `.proto` files say about them. */
export async function apiPage(): Promise<string> {
  const files = (await readContracts()).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const documented = new Set(
    files.flatMap(({ package: name, messageType }) => messageType.flatMap((m) => namesOf(m, name))),
  );
  for (const file of files) for (const { name } of file.enumType) documented.add(`${file.package}.${name}`);
  const packages = [...new Set(files.map((file) => file.package))].toSorted((a, b) => rank(a) - rank(b));
  return page(
    pageHead("API", "the contracts in `proto/`"),
    "All services are on both ports: gRPC on the one, and Connect, gRPC-Web and JSON (`POST /package.Service/Method` with `content-type: application/json`) on the other. Reflection is on, so that any gRPC client can find all of this by itself.",
    services(packages.flatMap((name) => files.filter((file) => file.package === name))),
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

function services(files: readonly FileDescriptorProto[]): string {
  const rows = files.flatMap((file) => {
    const comment = commentsOf(file);
    return file.service.map(({ name }, at) => {
      const fullName = `${file.package}.${name}`;
      return [`[${code(fullName)}](${anchor(fullName)})`, comment(PATHS.service, at)];
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

const namesOf = (message: DescriptorProto, scope: string): string[] => {
  const name = `${scope}.${message.name}`;
  return [
    name,
    ...message.nestedType.flatMap((nested) => namesOf(nested, name)),
    ...message.enumType.map((e) => `${name}.${e.name}`),
  ];
};

function describeFile(file: FileDescriptorProto, documented: ReadonlySet<string>): string[] {
  const comment = commentsOf(file);
  const link = linkTo(documented);
  return [
    comment(PATHS.package),
    ...file.service.flatMap((service, at) => describeService(service, [PATHS.service, at], { file, comment, link })),
    ...file.messageType.flatMap((message, at) =>
      describeMessage(message, file.package, [PATHS.message, at], { file, comment, link }),
    ),
    ...file.enumType.flatMap((type, at) => describeEnum(type, file.package, [PATHS.enum, at], comment)),
  ];
}

interface Reading {
  readonly file: FileDescriptorProto;
  readonly comment: CommentOf;
  readonly link: (typeName: string) => string;
}

const linkTo = (documented: ReadonlySet<string>) => (typeName: string) => {
  const name = typeName.replace(/^\./, "");
  return documented.has(name) ? `[${code(name)}](${anchor(name)})` : code(name);
};

function describeService(service: ServiceDescriptorProto, path: number[], { file, comment, link }: Reading): string[] {
  const fullName = `${file.package}.${service.name}`;
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
  const allowed = allowedFor(method);
  if (allowed === "anyone") return "anyone";
  return allowed.length === 0 ? "nobody" : allowed.map(code).join(", ");
};

function describeMessage(message: DescriptorProto, scope: string, path: number[], reading: Reading): string[] {
  if (message.options?.mapEntry) return [];
  const fullName = `${scope}.${message.name}`;
  const { comment } = reading;
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
    ...message.nestedType.flatMap((nested, at) =>
      describeMessage(nested, fullName, [...path, PATHS.nestedMessage, at], reading),
    ),
    ...message.enumType.flatMap((type, at) => describeEnum(type, fullName, [...path, PATHS.nestedEnum, at], comment)),
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

function describeEnum(type: EnumDescriptorProto, scope: string, path: number[], comment: CommentOf): string[] {
  const rows = type.value.map((value, at) => [
    String(value.number),
    code(value.name),
    comment(...path, PATHS.value, at),
  ]);
  return [`### ${scope}.${type.name}`, comment(...path), table(["No.", "Value", "Meaning"], rows)];
}

function routes(): string {
  const paths = Object.keys(METHOD_ROLES).filter((method) => method.includes(" "));
  return table(
    ["Route", "Roles"],
    paths.map((route) => [code(route), rolesOf(route)]),
  );
}
