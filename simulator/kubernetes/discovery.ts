import { type ApiRoute, ok } from "./api-call.ts";

const resource = (
  name: string,
  kind: string,
  verbs: readonly string[],
  more: Readonly<Record<string, unknown>> = {},
) => ({
  name,
  singularName: name.includes("/") ? "" : name.replace(/s$/, ""),
  namespaced: true,
  kind,
  verbs,
  ...more,
});

const CORE = {
  kind: "APIResourceList",
  groupVersion: "v1",
  resources: [
    resource("nodes", "Node", ["create", "get", "list", "watch", "patch", "delete"], {
      namespaced: false,
      shortNames: ["no"],
    }),
    resource("pods", "Pod", ["get", "list", "delete"], { shortNames: ["po"] }),
    resource("pods/eviction", "Eviction", ["create"], { group: "policy", version: "v1" }),
    resource("secrets", "Secret", ["get", "list", "create", "delete"]),
    resource("configmaps", "ConfigMap", ["get"], { shortNames: ["cm"] }),
  ],
};
const APPS = {
  kind: "APIResourceList",
  apiVersion: "v1",
  groupVersion: "apps/v1",
  resources: [resource("daemonsets", "DaemonSet", ["get"], { shortNames: ["ds"] })],
};
const POLICY = { kind: "APIResourceList", apiVersion: "v1", groupVersion: "policy/v1", resources: [] };

const group = (name: string) => ({
  name,
  versions: [{ groupVersion: `${name}/v1`, version: "v1" }],
  preferredVersion: { groupVersion: `${name}/v1`, version: "v1" },
});

/** What there is, for clients that ask before they do anything. */
export const DISCOVERY_ROUTES: readonly ApiRoute[] = [
  [
    "GET",
    /^\/version$/,
    () =>
      ok({
        major: "1",
        minor: "31",
        gitVersion: "v1.31.4",
        gitTreeState: "clean",
        platform: "linux/amd64",
        goVersion: "",
        compiler: "gc",
      }),
  ],
  ["GET", /^\/(?:healthz|livez|readyz)$/, () => ({ status: 200, text: "ok" })],
  ["GET", /^\/api$/, () => ok({ kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] })],
  ["GET", /^\/apis$/, () => ok({ kind: "APIGroupList", apiVersion: "v1", groups: [group("apps"), group("policy")] })],
  ["GET", /^\/api\/v1$/, () => ok(CORE)],
  ["GET", /^\/apis\/apps\/v1$/, () => ok(APPS)],
  ["GET", /^\/apis\/policy\/v1$/, () => ok(POLICY)],
];
