import type { DescriptorProto, FileDescriptorProto } from "@bufbuild/protobuf/wkt";

/** Full names of the given services and of the messages and enums that they are made of; what only others use is left out. */
export function subsetOf(
  files: readonly FileDescriptorProto[],
  { services, messages }: { readonly services: ReadonlySet<string>; readonly messages: readonly string[] },
): ReadonlySet<string> {
  const used = indexOfUses(files);
  const kept = new Set<string>();
  const keep = (name: string): void => {
    const uses = used.get(name);
    if (uses === undefined || kept.has(name)) return; // undefined: a contract of others, which everybody has
    kept.add(name);
    for (const next of uses) keep(next);
  };
  for (const name of [...services, ...messages]) keep(name);
  return kept;
}

/** For every service, message and enum: the types that it names. */
function indexOfUses(files: readonly FileDescriptorProto[]): ReadonlyMap<string, readonly string[]> {
  const uses = new Map<string, readonly string[]>();
  const withoutDot = (name: string) => name.replace(/^\./, "");
  const addMessage = (message: DescriptorProto, scope: string): void => {
    const name = `${scope}.${message.name}`;
    uses.set(
      name,
      message.field.flatMap(({ typeName }) => (typeName === "" ? [] : [withoutDot(typeName)])),
    );
    for (const nested of message.nestedType) addMessage(nested, name);
    for (const { name: word } of message.enumType) uses.set(`${name}.${word}`, []);
  };
  for (const file of files) {
    for (const message of file.messageType) addMessage(message, file.package);
    for (const { name } of file.enumType) uses.set(`${file.package}.${name}`, []);
    for (const { name, method } of file.service) {
      const types = method.flatMap(({ inputType, outputType }) => [withoutDot(inputType), withoutDot(outputType)]);
      uses.set(`${file.package}.${name}`, types);
    }
  }
  return uses;
}
