import { type DescExtension, type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/** Everything that the given services are made of, by every name under which a client may ask for it. */
export class DescriptorIndex {
  readonly serviceNames: readonly string[];
  readonly #files = new Map<string, DescFile>();
  readonly #symbols = new Map<string, DescFile>();
  readonly #extensions = new Map<string, Map<number, DescExtension>>();
  readonly #messages = new Set<string>();
  readonly #serialised = new Map<DescFile, Uint8Array>();

  constructor(services: Iterable<DescService>) {
    const distinct = new Map([...services].map((service) => [service.typeName, service]));
    this.serviceNames = [...distinct.keys()].sort();
    for (const service of distinct.values()) this.#addFile(service.file);
  }

  fileNamed(name: string): DescFile | undefined {
    return this.#files.get(name);
  }

  /** Accepts full names of services, methods, messages, fields, enums, enum values and extensions. */
  fileDeclaring(symbol: string): DescFile | undefined {
    return this.#symbols.get(symbol);
  }

  fileExtending(messageName: string, number: number): DescFile | undefined {
    return this.#extensions.get(messageName)?.get(number)?.file;
  }

  /** Undefined for a message that nothing here knows. */
  extensionNumbers(messageName: string): readonly number[] | undefined {
    if (!this.#messages.has(messageName)) return undefined;
    return [...(this.#extensions.get(messageName)?.keys() ?? [])].sort((a, b) => a - b);
  }

  serialised(file: DescFile): Uint8Array {
    const bytes = this.#serialised.get(file) ?? toBinary(FileDescriptorProtoSchema, file.proto);
    this.#serialised.set(file, bytes);
    return bytes;
  }

  #addFile(file: DescFile): void {
    if (this.#files.has(file.proto.name)) return;
    this.#files.set(file.proto.name, file);
    for (const type of nestedTypes(file)) {
      this.#symbols.set(type.typeName, file);
      if (type.kind === "message") {
        this.#messages.add(type.typeName);
        for (const member of [...type.fields, ...type.oneofs])
          this.#symbols.set(`${type.typeName}.${member.name}`, file);
      } else if (type.kind === "enum") {
        // Values live beside their enum, not inside it.
        const scope = type.typeName.slice(0, -type.name.length);
        for (const value of type.values) this.#symbols.set(`${scope}${value.name}`, file);
      } else if (type.kind === "service") {
        for (const method of type.methods) this.#symbols.set(`${type.typeName}.${method.name}`, file);
      } else {
        const known = this.#extensions.get(type.extendee.typeName) ?? new Map<number, DescExtension>();
        this.#extensions.set(type.extendee.typeName, known.set(type.number, type));
      }
    }
    for (const dependency of file.dependencies) this.#addFile(dependency);
  }
}
