import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";

/** Field numbers within `descriptor.proto`: source locations name a part of a file by the way to it. */
export const PATHS = {
  package: 2,
  message: 4,
  enum: 5,
  service: 6,
  field: 2,
  nestedMessage: 3,
  nestedEnum: 4,
  method: 2,
  value: 2,
} as const;

/** Finds the comment that stands before a part of a file, by the part's path. */
export type CommentOf = (...path: readonly number[]) => string;

export function commentsOf(file: FileDescriptorProto): CommentOf {
  const comments = new Map(
    (file.sourceCodeInfo?.location ?? []).map(({ path, leadingComments, trailingComments }) => [
      path.join("."),
      tidy(leadingComments || trailingComments),
    ]),
  );
  return (...path) => comments.get(path.join(".")) ?? "";
}

const tidy = (comment: string): string =>
  comment
    .split("\n")
    .map((line) => line.trim())
    .join(" ")
    .trim();
