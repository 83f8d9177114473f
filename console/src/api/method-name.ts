import type { DescMethodUnary } from "@bufbuild/protobuf";

/** As the tables of roles have it. */
export const nameOfMethod = ({ parent, name }: Pick<DescMethodUnary, "parent" | "name">): string =>
  `${parent.typeName}/${name}`;
