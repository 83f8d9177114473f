import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CloudInitDocumentSchema } from "../../../contract/millwright/v1/cloud_init_pb.js";
import type { ClusterSchema, ImageSchema } from "../../../contract/millwright/v1/cluster_pb.js";
import { type CloudInitRow, digestOf } from "../../services/catalog/cloud-init.ts";
import type { ClusterRow } from "../../services/catalog/clusters.ts";
import type { ImageRow } from "../../services/catalog/images.ts";
import { timestampOf } from "../convert/fields.ts";

export const clusterOf = ({ name, apiUrl, createdAt }: ClusterRow): MessageInitShape<typeof ClusterSchema> => ({
  name,
  apiUrl,
  createdAt: timestampOf(createdAt),
});

export const imageOf = ({ createdAt, seed, seedOn, ...image }: ImageRow): MessageInitShape<typeof ImageSchema> => ({
  ...image,
  seed: seed ?? "",
  seedOn: seedOn ?? "",
  createdAt: timestampOf(createdAt),
});

/** Without the content, which may hold what not every viewer is to read. */
export const cloudInitSummaryOf = ({
  name,
  content,
  createdAt,
}: CloudInitRow): MessageInitShape<typeof CloudInitDocumentSchema> => ({
  name,
  digest: digestOf(content),
  createdAt: timestampOf(createdAt),
});

export const cloudInitOf = (document: CloudInitRow): MessageInitShape<typeof CloudInitDocumentSchema> => ({
  ...cloudInitSummaryOf(document),
  content: document.content,
});
