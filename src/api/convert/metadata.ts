import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Label, MetadataSchema, Metadata as WireMetadata } from "../../../contract/forge/shared_pb.js";
import { AppError } from "../../kernel/errors.ts";
import type { Metadata } from "../../services/device/metadata.ts";

export const metadataFrom = ({ name, description, labels }: WireMetadata, field = "metadata"): Metadata => ({
  name,
  description,
  labels: labelsFrom(labels, `${field}.labels`),
});

/** Of two labels with one key one would be lost, and which is anybody's guess. */
function labelsFrom(labels: readonly Label[], field: string): Metadata["labels"] {
  const all = new Map<string, string | null>();
  for (const { key, value } of labels) {
    if (all.has(key)) {
      const shown = JSON.stringify(key.slice(0, 80));
      throw new AppError("invalid_argument", `${field}: the key ${shown} is given twice`, { field });
    }
    all.set(key, value ?? null);
  }
  return Object.fromEntries(all);
}

export const metadataOf = ({ name, description, labels }: Metadata): MessageInitShape<typeof MetadataSchema> => ({
  name,
  description,
  labels: Object.entries(labels).map(([key, value]) => (value === null ? { key } : { key, value })),
});

/** For contracts whose labels are a map: a label without a value has an empty one. */
export const labelMapOf = (labels: Metadata["labels"]): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, value ?? ""]));
