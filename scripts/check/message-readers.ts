import { withoutComments } from "./imports.ts";
import { isTest, type SourceFile } from "./source-files.ts";

/** Who has to read the words of other software, which tells no code. */
const READ_FOREIGN = [
  "src/providers/", // BMCs, ipmitool, sshd, clusters
  "src/store/embedded/", // PostgreSQL as it starts
  "src/store/postgres/database-errors.ts", // its driver
  "src/api/transport/transport-errors.ts", // Connect and the protobuf decoder
  "src/cli/client/errors.ts", // what answers in the place of a server
  "src/cli/commands/expected-power-shelf/expected-file.ts", // the protobuf decoder
  "src/cli/commands/document/document-file.ts", // the YAML parser
];

const MESSAGE = String.raw`\b(?:\w*[mM]essage|messageOf\([^()]*\)|reason|detail|rule)`;
const READS = new RegExp(
  [
    String.raw`${MESSAGE}\s*\??\.(?:startsWith|endsWith|includes|indexOf|match|matchAll|search|split)\(`,
    String.raw`${MESSAGE}\s*\??\.replace(?:All)?\(\s*(?:["'\x60]|/[\^\w])`,
    String.raw`\.(?:test|exec)\(\s*[\w.?]*${MESSAGE}\s*[),]`,
    String.raw`\b\w*[mM]essage\s*[!=]==\s*["'\x60][^"'\x60]`,
  ].join("|"),
);

/** Our messages are for people, and change: code goes by causes, kinds, fields and records. */
export function findMessageReaders({ path, text }: SourceFile): string[] {
  if (!path.startsWith("src/") || isTest(path) || READ_FOREIGN.some((place) => path.startsWith(place))) return [];
  return withoutComments(text)
    .split("\n")
    .flatMap((line, at) =>
      READS.test(line) ? [`${path}:${at + 1} reads a message; give it a cause, a field or a record to go by`] : [],
    );
}
