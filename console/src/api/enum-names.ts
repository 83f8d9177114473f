import type { DescEnum } from "@bufbuild/protobuf";

/** The word of the contract for a value of an enum, such as IN_SERVICE: the spelling of filters, tables and metrics. */
export const enumName = (schema: DescEnum, value: number): string =>
  schema.values.find(({ number }) => number === value)?.name ?? String(value);
