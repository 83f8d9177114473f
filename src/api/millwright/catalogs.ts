import type { ServiceImpl } from "@connectrpc/connect";
import type { CloudInitService } from "../../../contract/millwright/v1/cloud_init_pb.js";
import type { ClusterService, ImageService } from "../../../contract/millwright/v1/cluster_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { createCloudInit, deleteCloudInit, getCloudInit, pageCloudInit } from "../../services/catalog/cloud-init.ts";
import { createCluster, deleteCluster, pageClusters, updateCluster } from "../../services/catalog/clusters.ts";
import { createImage, deleteImage, pageImages } from "../../services/catalog/images.ts";
import { listRequestFrom, pageOf } from "../convert/listing.ts";
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
  async listClusters(request) {
    const page = await pageClusters(deps, listRequestFrom(request, null));
    return { clusters: page.items.map(clusterOf), ...pageOf(page) };
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
  async listImages(request) {
    const page = await pageImages(deps, listRequestFrom(request, null));
    return { images: page.items.map(imageOf), ...pageOf(page) };
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
  async listCloudInit(request) {
    const page = await pageCloudInit(deps, listRequestFrom(request, null));
    return { documents: page.items.map(cloudInitSummaryOf), ...pageOf(page) };
  },
  async deleteCloudInit({ name }, { values }) {
    await deleteCloudInit(deps, values.get(callerKey), name);
    return {};
  },
});
