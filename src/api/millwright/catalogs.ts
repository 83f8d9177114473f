import type { ServiceImpl } from "@connectrpc/connect";
import type { CloudInitService } from "../../../contract/millwright/v1/cloud_init_pb.js";
import type { ClusterService, ImageService } from "../../../contract/millwright/v1/cluster_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { createCloudInit, deleteCloudInit, getCloudInit, pageCloudInit } from "../../services/catalog/cloud-init.ts";
import { createCluster, deleteCluster, pageClusters, updateCluster } from "../../services/catalog/clusters.ts";
import { createImage, deleteImage, pageImages } from "../../services/catalog/images.ts";
import { callerKey } from "../transport/interceptors.ts";
import { cloudInitOf, cloudInitSummaryOf, clusterOf, imageOf } from "./catalog-messages.ts";

export const clusters = (deps: ServiceDeps): ServiceImpl<typeof ClusterService> => ({
  async createCluster(request, { values }) {
    const { cluster, warnings } = await createCluster(deps, values.get(callerKey), request);
    return { cluster: clusterOf(cluster), warnings: [...warnings] };
  },
  async updateCluster(request, { values }) {
    const { cluster, warnings } = await updateCluster(deps, values.get(callerKey), request);
    return { cluster: clusterOf(cluster), warnings: [...warnings] };
  },
  async listClusters({ pageSize, pageToken }) {
    const { items, nextPageToken } = await pageClusters(deps, { pageSize, pageToken });
    return { clusters: items.map(clusterOf), nextPageToken };
  },
  async deleteCluster({ name }, { values }) {
    await deleteCluster(deps, values.get(callerKey), name);
    return {};
  },
});

export const images = (deps: ServiceDeps): ServiceImpl<typeof ImageService> => ({
  async createImage(request, { values }) {
    return { image: imageOf(await createImage(deps, values.get(callerKey), request)) };
  },
  async listImages({ pageSize, pageToken }) {
    const { items, nextPageToken } = await pageImages(deps, { pageSize, pageToken });
    return { images: items.map(imageOf), nextPageToken };
  },
  async deleteImage({ name }, { values }) {
    await deleteImage(deps, values.get(callerKey), name);
    return {};
  },
});

export const cloudInit = (deps: ServiceDeps): ServiceImpl<typeof CloudInitService> => ({
  async createCloudInit(request, { values }) {
    return { document: cloudInitSummaryOf(await createCloudInit(deps, values.get(callerKey), request)) };
  },
  async getCloudInit({ name }) {
    return { document: cloudInitOf(await getCloudInit(deps, name)) };
  },
  async listCloudInit({ pageSize, pageToken }) {
    const { items, nextPageToken } = await pageCloudInit(deps, { pageSize, pageToken });
    return { documents: items.map(cloudInitSummaryOf), nextPageToken };
  },
  async deleteCloudInit({ name }, { values }) {
    await deleteCloudInit(deps, values.get(callerKey), name);
    return {};
  },
});
