import { definePage } from "../page.ts";

export const workflowsPage = definePage({
  path: "/workflows",
  title: "Workflows",
  nav: { group: "work" },
  needs: "millwright.v1.NodeService/ListWorkflows",
  load: async () => (await import("./workflows.tsx")).Workflows,
});

export const groupsPage = definePage({
  path: "/groups",
  title: "Groups",
  nav: { group: "system" },
  needs: "millwright.v1.NodeService/ListNodeGroups",
  load: async () => (await import("./groups.tsx")).Groups,
});

export const rackProfilesPage = definePage({
  path: "/rack-profiles",
  title: "Rack profiles",
  nav: { group: "system" },
  needs: "millwright.v1.RackService/ListRackProfiles",
  load: async () => (await import("./rack-profiles.tsx")).RackProfiles,
});

export const imagesPage = definePage({
  path: "/images",
  title: "Images",
  nav: { group: "system" },
  needs: "millwright.v1.ImageService/ListImages",
  load: async () => (await import("./images.tsx")).Images,
});

export const clustersPage = definePage({
  path: "/clusters",
  title: "Clusters",
  nav: { group: "system" },
  needs: "millwright.v1.ClusterService/ListClusters",
  load: async () => (await import("./clusters.tsx")).Clusters,
});

export const sitesPage = definePage({
  path: "/sites",
  title: "Sites",
  nav: { group: "system" },
  needs: "millwright.v1.FleetService/ListSites",
  load: async () => (await import("./sites.tsx")).Sites,
});

export const tokensPage = definePage({
  path: "/tokens",
  title: "Tokens",
  nav: { group: "system" },
  needs: "millwright.v1.TokenService/ListTokens",
  load: async () => (await import("./tokens.tsx")).Tokens,
});
