import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ClusterSchema, ImageSchema } from "../../../contract/millwright/v1/cluster_pb.js";
import type { ClusterRow } from "../../services/catalog/clusters.ts";
import type { ImageRow } from "../../services/catalog/images.ts";
import { timestampOf } from "../convert/fields.ts";

export const clusterOf = ({ name, apiUrl, createdAt }: ClusterRow): MessageInitShape<typeof ClusterSchema> => ({
  name,
  apiUrl,
  createdAt: timestampOf(createdAt),
});

export const imageOf = ({ createdAt, ...image }: ImageRow): MessageInitShape<typeof ImageSchema> => ({
  ...image,
  createdAt: timestampOf(createdAt),
});
